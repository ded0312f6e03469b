"""What live jobs reserve in a namespace: names and room for their pods; and the jobs that wait for room."""
