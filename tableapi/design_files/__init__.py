"""Design files: tables, columns, choices, views, rules, set-on-change rules, roles and shared lists as one YAML text.

    parse (document) ──▶ read what is stored (kinds) ──▶ compare (plan) ──▶ save in one transaction (apply)

Export reads what is stored and writes the text. Everything is identified by name.
"""
