"""Sends changes to webhooks.

subscriptions ──▶ change_scan ──▶ delivery ──▶ payload ──▶ signature and request
checks what an    turns logged    the next     what the    of the delivery;
administrator     changes into    one of each  user may    the answer is logged
enters            deliveries      record       read now
"""
