"""What both PDF parsers share: from the lines of the pages to text with headings, tables and warnings.

lines           the lines of a page with their positions       written by the parsers
running_lines   finds running heads, feet and page numbers
hyphens         joins words that are divided at line ends
headings        finds headings, from the outline or by type size
tables          finds tables by the positions of their cells
pages           composes these, and writes the pages
"""
