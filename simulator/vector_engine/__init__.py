"""The fast speed: whole networks over many epochs as arrays, with the trace that the motes would leave one by one."""
