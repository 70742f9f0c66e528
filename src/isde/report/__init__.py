"""One page on a fitted model, to send to a colleague: a single file that asks for nothing from anywhere.

`report_numbers` collects everything that is said, as plain JSON; `render` writes the page from that and from nothing
else. Rows of the data are counted, never written.
"""

from isde.report.numbers import report_numbers
from isde.report.page import check_target, render, require_jinja2, save_page, write_report

__all__ = ["check_target", "render", "report_numbers", "require_jinja2", "save_page", "write_report"]
