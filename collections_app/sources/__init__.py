"""Loads web pages and folders on a schedule, through the same pipeline as uploads.

creation   checks and stores a source
refresh    leases a due source, loads it, and records the outcome
web_page   fetches a page through the outbound guard, and loads it if its text has changed
watching   compares a folder with the files that were loaded, and loads or deletes their documents
loads      loads content as a document
folder     lists and reads files below the allowed folders, without following symbolic links
"""
