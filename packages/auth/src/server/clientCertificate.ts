/**
 * The certificate of a client: of the connection itself, or forwarded by a proxy that ends TLS.
 */
import { sha256Base64Url } from "@skein/runtime/Digest"
import type { HttpRequest } from "@skein/server/Http"
import * as Effect from "effect/Effect"
import { decode } from "jose/base64url"
import { makeNetworks } from "./networks.ts"
import { nodeCrypto } from "./tokens/sha256.ts"

/** A certificate that was verified by TLS, here or at a trusted proxy. */
export interface ClientCertificate {
  /** The certificate in DER form. */
  readonly raw: Uint8Array
  /** Its SHA-256 thumbprint in base64url: the `x5t#S256` of tokens that are bound to it (RFC 8705, 3.1). */
  readonly thumbprint: string
  /** The distinguished name of its subject, one attribute a line. Undefined on platforms without Node's modules. */
  readonly subject: string | undefined
  /** The alternative names of its subject, as `DNS:kettle.example`. Undefined if it has none, or as for `subject`. */
  readonly subjectAltName: string | undefined
  /** The distinguished name of its issuer. Undefined on platforms without Node's modules. */
  readonly issuer: string | undefined
}

/** The header in which a proxy forwards the certificate of its client. */
export interface ForwardedCertificate {
  /** The name of the header: `client-cert` by default (RFC 9440). */
  readonly header?: string | undefined
  /**
   * How the certificate is written: `"rfc9440"` by default, a byte sequence. `"pem"`: a PEM text, URL-encoded, as nginx
   * (`$ssl_client_escaped_cert`) and AWS load balancers write it.
   */
  readonly format?: "rfc9440" | "pem" | undefined
  /**
   * The networks of the proxies, in CIDR notation. The header counts only on their connections. They must verify the
   * certificate, and remove the header from the requests of clients (RFC 9440, 4).
   */
  readonly proxies: ReadonlyArray<string>
}

// Standard base64, decoded as base64url.
const fromBase64 = (text: string): Uint8Array | undefined => {
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(text)) return undefined
  try {
    return decode(text.replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, ""))
  } catch {
    return undefined
  }
}

const readers: Readonly<Record<"rfc9440" | "pem", (value: string) => Uint8Array | undefined>> = {
  // "The field value […] is a byte sequence" (RFC 9440, 2.2): base64 between colons.
  rfc9440: (value) => value.startsWith(":") && value.endsWith(":") ? fromBase64(value.slice(1, -1)) : undefined,
  pem: (value) => {
    try {
      // AWS leaves `+` as it is, so it is not a space.
      const pem = /^-----BEGIN CERTIFICATE-----([^-]+)-----END CERTIFICATE-----\s*$/.exec(decodeURIComponent(value))
      return pem === null ? undefined : fromBase64(pem[1]!.replaceAll(/\s/g, ""))
    } catch {
      return undefined
    }
  }
}

/** The longest forwarded certificate that is read, in characters. */
const maxCertificateChars = 16_384

// Forwarded certificates that are decoded once. Only trusted proxies send them.
const maxDecoded = 1_000

/** Whether a request came with a certificate, and a malformed one is distinguished from none. */
type FoundCertificate = Uint8Array | "malformed" | undefined

/** Makes the function that finds the certificate of a request. Throws if a network is malformed. */
export const certificateFinder = (
  forwarded: ForwardedCertificate | undefined
): (request: HttpRequest) => FoundCertificate => {
  if (forwarded === undefined) return ({ clientCertificate }) => clientCertificate
  const { format = "rfc9440", header = "client-cert" } = forwarded
  const isProxy = makeNetworks(forwarded.proxies)
  const name = header.toLowerCase()
  const decoded = new Map<string, Uint8Array>()
  return (request) => {
    // The certificate of a proxy's own connection is not that of the client.
    if (!isProxy(request.peerAddress)) return request.clientCertificate
    const value = request.header(name)
    if (value === undefined || value === "") return undefined
    const known = decoded.get(value)
    if (known !== undefined) return known
    const raw = value.length > maxCertificateChars ? undefined : readers[format](value.trim())
    if (raw === undefined) return "malformed"
    if (decoded.size >= maxDecoded) decoded.delete(decoded.keys().next().value!)
    decoded.set(value, raw)
    return raw
  }
}

/** The thumbprint of a certificate (RFC 8705, 3.1). */
export const thumbprintOf: (raw: Uint8Array) => Effect.Effect<string> = sha256Base64Url

/** The facts in a certificate. Undefined if it is not a certificate. */
export const readCertificate = (raw: Uint8Array): Effect.Effect<ClientCertificate | undefined> =>
  Effect.map(thumbprintOf(raw), (thumbprint) => {
    const node = nodeCrypto()
    try {
      const facts = node === undefined ? undefined : new node.X509Certificate(raw)
      return {
        raw,
        thumbprint,
        subject: facts?.subject,
        subjectAltName: facts?.subjectAltName,
        issuer: facts?.issuer
      }
    } catch {
      return undefined
    }
  })
