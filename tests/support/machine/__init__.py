"""What a test does to the machine: processes, ports, connections, disks, terminals and clocks."""
