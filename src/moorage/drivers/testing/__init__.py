"""What every driver has to hold, as tests: a driver's own package derives a class from `DriverContract`.

    class TestMine(DriverContract):
        @pytest.fixture
        def stand(self, tmp_path: Path) -> Iterator[DriverStand]:
            stand = MyStand(tmp_path)
            yield stand
            stand.driver.close()

Tests of a part that the driver does not have are skipped. It needs pytest (`pip install 'moorage[test]'`).
"""

from __future__ import annotations

from moorage.drivers.testing.driver_contract import DriverContract
from moorage.drivers.testing.stand import DriverStand

__all__ = ["DriverContract", "DriverStand"]
