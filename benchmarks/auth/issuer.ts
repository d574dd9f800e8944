/** An issuer of tokens on loopback, with its keys, and a client that makes DPoP proofs. */
import { calculateJwkThumbprint, type CryptoKey, exportJWK, generateKeyPair, type JWK, SignJWT } from "jose"
import { createHash } from "node:crypto"
import { createServer, type Server } from "node:http"
import type { AddressInfo } from "node:net"

/** The resource that the tokens are for. */
export const resource = "https://tea.example/mcp"

/** Issues tokens. */
export class Issuer {
  readonly url = "https://login.example"
  /** The address of the keys. */
  readonly keys: string
  /** The thumbprint of the key of proofs. */
  readonly jkt: string
  readonly #server: Server
  readonly #key: CryptoKey
  readonly #proofKey: CryptoKey
  readonly #proofJwk: JWK
  #count = 0

  private constructor(server: Server, key: CryptoKey, proofKey: CryptoKey, proofJwk: JWK, jkt: string) {
    this.keys = `http://127.0.0.1:${(server.address() as AddressInfo).port}/keys`
    this.jkt = jkt
    this.#server = server
    this.#key = key
    this.#proofKey = proofKey
    this.#proofJwk = proofJwk
  }

  static async start(): Promise<Issuer> {
    const [own, proof] = [await generateKeyPair("ES256"), await generateKeyPair("ES256")]
    const jwk = { ...await exportJWK(own.publicKey), alg: "ES256", use: "sig", kid: "key" }
    const proofJwk = await exportJWK(proof.publicKey)
    const server = createServer((_request, response) => {
      response.setHeader("content-type", "application/json").end(JSON.stringify({ keys: [jwk] }))
    })
    await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening))
    return new Issuer(server, own.privateKey, proof.privateKey, proofJwk, await calculateJwkThumbprint(proofJwk))
  }

  /** Makes a token that no other one equals. */
  token(claims: object = {}): Promise<string> {
    return new SignJWT({ client_id: "benchmark", scope: "tea", jti: String(this.#count++), ...claims })
      .setProtectedHeader({ alg: "ES256", kid: "key", typ: "at+jwt" })
      .setIssuer(this.url).setAudience(resource).setSubject("ada").setIssuedAt().setExpirationTime("1 hour")
      .sign(this.#key)
  }

  /** Makes a proof for one call with a token. */
  prove(token: string): Promise<string> {
    const ath = createHash("sha256").update(token).digest("base64url")
    return new SignJWT({ htm: "POST", htu: resource, jti: String(this.#count++), ath })
      .setProtectedHeader({ alg: "ES256", typ: "dpop+jwt", jwk: this.#proofJwk }).setIssuedAt()
      .sign(this.#proofKey)
  }

  stop(): void {
    this.#server.closeAllConnections()
    this.#server.close()
  }
}
