"""The panes: each module draws one, from the model into a grid."""
