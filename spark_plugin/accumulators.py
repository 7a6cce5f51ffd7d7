"""Named accumulators of a job of its own, which the page of its stage shows as a table.

PySpark's own have no names. An accumulator of the JVM has one, but only what tasks add there is
shown, and there is no class of ours that could. So the one task of this job evaluates expressions
that Spark's jars have: each calls ``add`` of an accumulator with a field of a row.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from spark_plugin.connect import of_connect
from spark_plugin.naming import jobs_named

_MODE = "spark.sql.codegen.factoryMode"
"""Whether the task compiles expressions, which takes a second."""


def leave(session: SparkSession, line: str, figures: Mapping[str, float]) -> None:
    """Leave a line in Spark's list of jobs, and figures on the page of its stage.

    Where Spark lacks what accumulators take, or lets nobody call it, the line is a job without
    tasks. Spark Connect has neither.
    """
    if of_connect(session):
        return
    with jobs_named(session, line):
        try:
            accumulate(session, figures)
        except (Py4JError, PySparkException, TypeError):
            session.sparkContext.emptyRDD().collect()


def accumulate(session: SparkSession, figures: Mapping[str, float]) -> None:
    """Run a job whose only stage has an accumulator of each name, with that figure.

    Integers are shown as such, other figures as doubles.

    Raises
    ------
    Py4JError, PySparkException, TypeError
        Where this Spark lacks a class, or lets nobody call it.
    """
    context = session.sparkContext
    java: Any = context._jvm  # noqa: SLF001 - Python has no such accumulators
    scala = context._jsc.sc()  # noqa: SLF001 - as above
    sql = java.org.apache.spark.sql
    catalyst, types = sql.catalyst.expressions, sql.types
    utils = java.org.apache.spark.api.python.PythonUtils
    nothing = utils.toSeq([])
    whole = [isinstance(figure, int) for figure in figures.values()]
    kinds = [types.DataType.fromJson('"long"' if own else '"double"') for own in whole]
    row = catalyst.SpecificInternalRow(utils.toSeq(kinds))
    sums = []
    for i, (name, figure) in enumerate(figures.items()):
        (row.setLong if whole[i] else row.setDouble)(i, figure)
        total = (scala.longAccumulator if whole[i] else scala.doubleAccumulator)(name)
        setters = utils.toScalaMap({"add": catalyst.BoundReference(i, kinds[i], False)})
        held = catalyst.Literal(total, types.ObjectType(total.getClass()))
        added = catalyst.objects.InitializeJavaBean(held, setters)
        how = (False, False, False)  # nulls neither go through nor come, and it is not foldable
        sums.append(catalyst.objects.Invoke(added, "sum", kinds[i], nothing, nothing, *how))
    factory = sql.execution.ProjectEvaluatorFactory(utils.toSeq(sums), nothing)
    rows = context._jsc.parallelize([row], 1)  # noqa: SLF001 - as above
    before = context.getLocalProperty(_MODE)
    context.setLocalProperty(_MODE, "NO_CODEGEN")
    try:
        rows.rdd().mapPartitionsWithEvaluator(factory, rows.classTag()).count()
    finally:
        context.setLocalProperty(_MODE, before)
