"""How the libvirt driver behaves: the options of `[libvirt]`."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from oslo_config import cfg

from moorage.core.config import ConfigError
from moorage.drivers.libvirt.moves.settings import MoveSettings


@dataclass(frozen=True)
class LibvirtSettings:
    instances_path: Path
    connection_uri: str = "qemu:///system"
    virt_type: str = "kvm"
    cpu_mode: str = "none"
    cpu_models: tuple[str, ...] = ()
    cpu_features: tuple[str, ...] = ()
    machine_type: str = "q35"
    architecture: str = "x86_64"
    disk_cache: str = "none"
    unused_image_seconds: float = 86_400.0
    shutdown_timeout: float = 60.0
    shutdown_retry_interval: float = 10.0
    soft_reboot_timeout: float = 120.0
    detach_timeout: float = 20.0
    detach_attempts: int = 8
    vnc_listen: str = "127.0.0.1"
    serial_listen: str = ""
    serial_ports: tuple[int, int] = (10_000, 20_000)
    console_address: str = ""
    console_log_bytes: int = 1 << 20
    rng_device: str = "/dev/urandom"
    memory_statistics_period: int = 10
    pcie_ports: int = 16
    video_model: str = "virtio"
    reconnect_seconds: float = 60.0
    """How long a call waits for a libvirtd that is being restarted."""
    state_path: Path = Path("/run/libvirt/qemu")
    """Where libvirtd keeps what runs."""
    client_timeout: float = 30.0
    """Seconds after which libvirtd closes the connection of a client that stands still."""
    moves: MoveSettings = field(default_factory=MoveSettings)

    @classmethod
    def from_conf(cls, conf: cfg.ConfigOpts) -> LibvirtSettings:
        options = conf.libvirt
        path = Path(options.instances_path)
        if not path.is_absolute():
            raise ConfigError("[libvirt] instances_path has to be absolute")
        usual = "host-model" if options.virt_type == "kvm" else "none"
        mode = options.cpu_mode or usual
        if mode == "custom" and not options.cpu_models:
            raise ConfigError("[libvirt] cpu_mode = custom needs cpu_models")
        return cls(
            instances_path=path,
            connection_uri=options.connection_uri,
            virt_type=options.virt_type,
            cpu_mode=mode,
            cpu_models=tuple(options.cpu_models),
            cpu_features=tuple(options.cpu_model_extra_flags),
            machine_type=options.machine_type,
            disk_cache=options.disk_cache,
            unused_image_seconds=options.unused_image_seconds,
            shutdown_timeout=options.shutdown_timeout,
            shutdown_retry_interval=options.shutdown_retry_interval,
            soft_reboot_timeout=options.soft_reboot_timeout,
            detach_timeout=options.device_detach_timeout,
            detach_attempts=options.device_detach_attempts,
            vnc_listen=options.vnc_listen,
            serial_listen=options.serial_listen,
            serial_ports=_ports(options.serial_ports),
            console_address=options.console_address,
            console_log_bytes=options.console_log_bytes,
            rng_device=options.rng_device,
            memory_statistics_period=options.memory_statistics_period,
            pcie_ports=options.pcie_ports,
            video_model=options.video_model,
            state_path=Path(options.daemon_state_path),
            client_timeout=options.client_timeout,
            moves=MoveSettings.from_conf(conf),
        )


def _ports(text: str) -> tuple[int, int]:
    first, _, last = text.partition(":")
    try:
        ports = int(first), int(last)
    except ValueError:
        ports = (0, 0)
    if not 0 < ports[0] <= ports[1] < 65_536:
        raise ConfigError(f"[libvirt] serial_ports: {text!r} is no range of ports, as 10000:20000 is")
    return ports
