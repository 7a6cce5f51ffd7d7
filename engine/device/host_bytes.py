"""What lanes take of a machine's own memory on their way to a GPU."""

HOST_BYTES_A_ROW = 160
"""Of host memory while a lane is read, put together and copied to the device."""
HOST_BYTES_A_PARTNER = 60
"""Of host memory for two ids that facts join: both sides' partners, in order and placed."""
