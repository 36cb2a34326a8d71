"""What runs inside the network: routing, mote programs and the reports that motes make about their links."""
