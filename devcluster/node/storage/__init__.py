"""The volumes of pods: payloads of API objects, directories, and JuiceFS mounts."""
