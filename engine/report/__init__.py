"""Reports: what every one holds, how it is written and printed."""
