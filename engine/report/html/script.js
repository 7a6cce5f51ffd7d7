"use strict";
const charts = JSON.parse(document.getElementById("data").textContent);

const shown = (value) => {
  if (value === null) return "-";
  if (Math.abs(value) >= 1e15) return value.toExponential(3);
  const digits = Number.isInteger(value) ? {} : { maximumSignificantDigits: 6 };
  return value.toLocaleString("en-US", digits);
};

for (const figure of document.querySelectorAll("figure[data-chart]")) {
  const chart = charts[Number(figure.dataset.chart)];
  const svg = figure.querySelector("svg.plot");
  const cursor = svg.querySelector(".cursor");
  const read = figure.querySelector(".read");
  const count = chart.labels.length;
  const off = new Set();
  let at = -1;

  const nearest = (place) => {
    if (chart.kind === "points") {
      let best = 0;
      chart.at.forEach((own, i) => {
        if (Math.abs(own - place) < Math.abs(chart.at[best] - place)) best = i;
      });
      return best;
    }
    let i = 0;
    while (i < count - 1 && place >= chart.at[i + 1]) i += 1;
    return i;
  };

  const show = (i) => {
    at = i;
    read.textContent = "";
    const head = document.createElement("b");
    head.textContent = chart.labels[i];
    read.append(head);
    chart.series.forEach((own, number) => {
      if (off.has(number) || own.values[i] === null) return;
      const line = document.createElement("div");
      const band = own.low && own.low[i] !== null ? ` (${shown(own.low[i])} to ${shown(own.high[i])})` : "";
      line.textContent = `${own.name}: ${shown(own.values[i])}${band}`;
      read.append(line);
    });
    figure.classList.add("reading");
    const box = svg.getBoundingClientRect();
    const home = figure.getBoundingClientRect();
    const scale = box.width / svg.viewBox.baseVal.width;
    let left = 0;
    let top = box.top - home.top;
    if (chart.kind === "bars") {
      cursor.setAttribute("y", chart.at[i]);
      top += (chart.at[i + 1] + 4) * scale;
    } else {
      const end = chart.kind === "steps" ? chart.at[i + 1] : chart.at[i];
      const middle = (chart.at[i] + end) / 2;
      cursor.setAttribute("transform", `translate(${middle} 0)`);
      left = middle * scale + 12;
      if (left + read.offsetWidth > home.width) left = middle * scale - 12 - read.offsetWidth;
      left = Math.max(0, Math.min(left, home.width - read.offsetWidth));
      top += 8;
    }
    read.style.left = `${left}px`;
    read.style.top = `${top}px`;
  };

  const hide = () => {
    at = -1;
    figure.classList.remove("reading");
  };

  const follow = (event) => {
    const box = svg.getBoundingClientRect();
    const scale = svg.viewBox.baseVal.width / box.width;
    const place = chart.kind === "bars" ? event.clientY - box.top : event.clientX - box.left;
    if (count) show(nearest(place * scale));
  };
  svg.addEventListener("pointermove", follow);
  svg.addEventListener("pointerdown", follow);
  svg.addEventListener("pointerleave", hide);
  svg.addEventListener("blur", hide);
  svg.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key];
    if (event.key === "Escape") hide();
    if (step === undefined || !count) return;
    event.preventDefault();
    show(Math.max(0, Math.min(count - 1, at + step)));
  });

  for (const button of figure.querySelectorAll(".legend button")) {
    const number = Number(button.dataset.s);
    const group = svg.querySelector(`g[data-s="${number}"]`);
    if (button.getAttribute("aria-pressed") === "false") off.add(number);
    button.addEventListener("click", () => {
      const hidden = group.classList.toggle("off");
      button.setAttribute("aria-pressed", String(!hidden));
      if (hidden) off.add(number);
      else off.delete(number);
    });
  }
}

const rank = (text) => {
  const found = text.replace(/,/g, "").match(/-?\d+(\.\d+)?(e[+-]?\d+)?/i);
  return found === null ? null : Number(found[0]);
};

for (const table of document.querySelectorAll("table")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = head.querySelector("button");
    if (button === null) return;
    button.addEventListener("click", () => {
      const numeric = head.classList.contains("num");
      const before = head.getAttribute("aria-sort");
      const down = before === null ? numeric : before === "ascending";
      heads.forEach((own) => own.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      for (const body of table.tBodies) {
        const rows = [...body.rows].map((row) => {
          const text = row.cells[column].textContent;
          return { row, text, value: numeric ? rank(text) : text };
        });
        rows.sort((one, other) => {
          if (one.value === null || other.value === null) {
            return (one.value === null) - (other.value === null);
          }
          const order = numeric
            ? one.value - other.value
            : one.text.localeCompare(other.text, "en", { numeric: true });
          return down ? -order : order;
        });
        body.append(...rows.map((own) => own.row));
      }
    });
  });
}
