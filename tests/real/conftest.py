"""Real data and real models; where they are absent these tests are skipped with the reason."""

import pytest

from soda_tta.data.home import data_home
from soda_tta.errors import SodaError


@pytest.fixture(scope="session", autouse=True)
def real_data():
    try:
        return data_home()
    except SodaError as error:
        pytest.skip(str(error))
