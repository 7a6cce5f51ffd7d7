"""The fact relation F that streams are joined through (P2): read, indexed and looked up."""
