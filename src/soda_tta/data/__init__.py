"""Images in."""

from soda_tta.data.images import Images, open_images

__all__ = ["Images", "open_images"]
