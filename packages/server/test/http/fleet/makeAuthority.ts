/** Certificates for tests: an authority, and the certificates that it issues. */
import { generateKeyPairSync, type KeyObject, randomBytes, sign } from "node:crypto"

const der = (tag: number, ...parts: ReadonlyArray<Uint8Array>): Buffer => {
  const body = Buffer.concat(parts)
  const { length } = body
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 255]
  return Buffer.concat([Buffer.from([tag, ...size]), body])
}
const sequence = (...parts: ReadonlyArray<Uint8Array>) => der(0x30, ...parts)
const ecdsaWithSha256 = sequence(der(0x06, Buffer.from("2a8648ce3d040302", "hex")))

/** A name with a common name only. */
const nameOf = (text: string) =>
  sequence(der(0x31, sequence(der(0x06, Buffer.from("550403", "hex")), der(0x0c, Buffer.from(text)))))

const extension = (id: string, isCritical: boolean, value: Uint8Array) =>
  sequence(
    der(0x06, Buffer.from(id, "hex")),
    ...(isCritical ? [der(0x01, Buffer.from([255]))] : []),
    der(0x04, value)
  )

const time = (milliseconds: number) =>
  der(0x18, Buffer.from(new Date(milliseconds).toISOString().replaceAll(/[-:T]|\.\d+/g, "")))

const pem = (bytes: Uint8Array): string =>
  `-----BEGIN CERTIFICATE-----\n${
    Buffer.from(bytes).toString("base64").replaceAll(/.{64}/g, "$&\n")
  }\n-----END CERTIFICATE-----\n`

/** Issues an X.509 certificate (RFC 5280) that is valid for an hour around now. */
const issue = (issuer: string, subject: string, ofSubject: KeyObject, ofIssuer: KeyObject, own: Uint8Array): string => {
  const content = sequence(
    der(0xa0, der(0x02, Buffer.from([2]))),
    der(0x02, Buffer.concat([Buffer.from([1]), randomBytes(8)])),
    ecdsaWithSha256,
    nameOf(issuer),
    sequence(time(Date.now() - 1_800_000), time(Date.now() + 1_800_000)),
    nameOf(subject),
    ofSubject.export({ type: "spki", format: "der" }),
    der(0xa3, sequence(own))
  )
  const signature = sign("sha256", content, ofIssuer)
  return pem(sequence(content, ecdsaWithSha256, der(0x03, Buffer.from([0]), signature)))
}

const newKeys = () => generateKeyPairSync("ec", { namedCurve: "P-256" })

/** Makes an authority. `certificate` issues a certificate with a DNS name, and its key. */
export const makeAuthority = (name: string) => {
  const { privateKey, publicKey } = newKeys()
  const isAuthority = extension("551d13", true, sequence(der(0x01, Buffer.from([255]))))
  return {
    ca: issue(name, name, publicKey, privateKey, isAuthority),
    certificate: (dnsName: string) => {
      const keys = newKeys()
      const names = extension("551d11", false, sequence(der(0x82, Buffer.from(dnsName))))
      return {
        cert: issue(name, dnsName, keys.publicKey, privateKey, names),
        key: keys.privateKey.export({ type: "pkcs8", format: "pem" }) as string
      }
    }
  }
}

export type Authority = ReturnType<typeof makeAuthority>
