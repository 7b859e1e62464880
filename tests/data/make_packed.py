"""Writes unicode.csv once more, as other programs store it: unicode.xlsx, unicode.parquet, brotli.parquet and unicode.csv.zst.

Needs `pip install XlsxWriter==3.3.1 pyarrow==26.0.1 zstandard==0.25.0`.
"""
import csv, pathlib
import pyarrow, pyarrow.parquet, xlsxwriter, zstandard

here = pathlib.Path(__file__).parent
with open(here / "unicode.csv", newline="", encoding="utf-8") as text:
    header, *rows = csv.reader(text)

with xlsxwriter.Workbook(here / "unicode.xlsx", {"strings_to_numbers": False}) as book:
    book.add_worksheet("notes").write_string(0, 0, "The characters are on the other sheet.")
    sheet = book.add_worksheet("characters")
    for number, row in enumerate([header, *rows]):
        for column, cell in enumerate(row):
            sheet.write_string(number, column, cell)

columns = {name: pyarrow.array(cells) for name, cells in zip(header, zip(*rows))}
for name, codec in [("unicode", "zstd"), ("brotli", "brotli")]:
    path = here / f"{name}.parquet"
    pyarrow.parquet.write_table(pyarrow.table(columns), path, compression=codec, row_group_size=4000)

(here / "unicode.csv.zst").write_bytes(zstandard.ZstdCompressor(level=19).compress((here / "unicode.csv").read_bytes()))
