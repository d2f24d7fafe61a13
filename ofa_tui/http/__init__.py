"""An HTTP endpoint in OpenAI's form: clients complete text with the model while it trains.

`options` are the command line's, `server` is what a command opens; nothing else is imported unless --http is given.
"""
