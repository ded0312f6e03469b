"""The parts of a data cache: runtime servers, JuiceFS volumes, and an object storage."""
