"""The certificate authority of the cluster and the certificate of its API server, in one directory.

ca.crt, ca.key            the authority; the kubeconfig contains its certificate
server.crt, server.key    the certificate of the server, issued by the authority
"""

import ipaddress
import ssl
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from devcluster.host import write_private

# Ten years and one year, as kubeadm chooses.
CA_VALID = timedelta(days=3650)
SERVER_VALID = timedelta(days=365)
RENEW_BEFORE = timedelta(days=30)
"""A certificate is replaced this long before it expires."""
CLOCK_SKEW = timedelta(days=1)
"""Certificates are valid from this long before they are issued, because the clock of a machine may be set back."""
LOCAL_HOSTS = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True, slots=True)
class _Pair:
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey


class Certificates:
    """The certificates for `host` in one directory. `renew` creates and replaces them."""

    def __init__(self, directory: Path, host: str) -> None:
        self._directory = directory
        self._hosts = tuple(dict.fromkeys((host, *LOCAL_HOSTS)))

    def renew(self, now: datetime) -> bool:
        """Replace each certificate that is missing, damaged or close to expiry; return whether one was replaced."""
        authority = self._load("ca")
        kept_authority = authority is not None and _lasts(authority, now)
        if authority is None or not kept_authority:
            authority = _issue_authority(now)
            self._store("ca", authority)
        server = self._load("server")
        if server is not None and _lasts(server, now) and self._is_issued_by(authority, server):
            return not kept_authority
        self._store("server", _issue_server(authority, self._hosts, now))
        return True

    def authority_pem(self) -> bytes:
        return (self._directory / "ca.crt").read_bytes()

    def load_into(self, context: ssl.SSLContext) -> None:
        """Use the current certificate for new connections."""
        context.load_cert_chain(self._directory / "server.crt", self._directory / "server.key")

    def server_context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.load_into(context)
        return context

    def _is_issued_by(self, authority: _Pair, server: _Pair) -> bool:
        try:
            server.certificate.verify_directly_issued_by(authority.certificate)
        except (ValueError, TypeError, InvalidSignature):
            return False
        # After a start with another host, the certificate must contain that host.
        names = server.certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        return names == _alternative_names(self._hosts)

    def _load(self, name: str) -> _Pair | None:
        """Return a certificate with its key, or None if they do not match, as after a crash between the two writes."""
        try:
            certificate = x509.load_pem_x509_certificate((self._directory / f"{name}.crt").read_bytes())
            key = serialization.load_pem_private_key((self._directory / f"{name}.key").read_bytes(), None)
        except (OSError, ValueError, TypeError):
            return None
        if not isinstance(key, ec.EllipticCurvePrivateKey) or certificate.public_key() != key.public_key():
            return None
        return _Pair(certificate, key)

    def _store(self, name: str, pair: _Pair) -> None:
        pem, no_password = serialization.Encoding.PEM, serialization.NoEncryption()
        key = pair.key.private_bytes(pem, serialization.PrivateFormat.PKCS8, no_password)
        # If a crash separates the two writes, `_load` finds that they do not match.
        write_private(self._directory / f"{name}.key", key.decode())
        write_private(self._directory / f"{name}.crt", pair.certificate.public_bytes(pem).decode())


def _lasts(pair: _Pair, now: datetime) -> bool:
    certificate = pair.certificate
    return certificate.not_valid_before_utc <= now < certificate.not_valid_after_utc - RENEW_BEFORE


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _issue_authority(now: datetime) -> _Pair:
    key = ec.generate_private_key(ec.SECP256R1())
    # The serial number is part of the name, so that clients tell the authorities of several clusters apart.
    serial = x509.random_serial_number()
    name = _name(f"devcluster-ca-{serial % 2**32:08x}")
    built = (
        _builder(name, name, key, now, CA_VALID)
        .serial_number(serial)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(sign_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return _Pair(built, key)


def _issue_server(authority: _Pair, hosts: tuple[str, ...], now: datetime) -> _Pair:
    key = ec.generate_private_key(ec.SECP256R1())
    issuer = authority.certificate.subject
    identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key())
    built = (
        _builder(_name("devcluster"), issuer, key, now, SERVER_VALID)
        .serial_number(x509.random_serial_number())
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(sign_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(_alternative_names(hosts), critical=False)
        .add_extension(identifier, critical=False)
        .sign(authority.key, hashes.SHA256())
    )
    return _Pair(built, key)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, now: datetime, valid: timedelta
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(now + valid)
    )


def _key_usage(*, sign_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=sign_certificates,
        crl_sign=sign_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _alternative_names(hosts: tuple[str, ...]) -> x509.SubjectAlternativeName:
    return x509.SubjectAlternativeName([_general_name(host) for host in hosts])


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
