"""Archives of images: folders, tables, tar and Parquet files, local or behind an address."""
