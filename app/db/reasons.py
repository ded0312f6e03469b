"""Reasons of the history rows that say what somebody asked for; the controller's own are in the domain's vocabulary."""

EDITED = "Edited"
CANCEL_REQUESTED = "CancelRequested"
REMOVE_REQUESTED = "RemoveRequested"
DELETE_REQUESTED = "DeleteRequested"
