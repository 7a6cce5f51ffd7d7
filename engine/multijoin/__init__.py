"""The job of a multi-way join: archives in, outputs and a report out."""
