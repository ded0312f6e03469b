"""Operations on files below untrusted paths. They never follow a link, and they can be cancelled."""
