/** A client that makes DPoP proofs, right ones and wrong ones. */
import * as Effect from "effect/Effect"
import * as jose from "jose"
import { createHash } from "node:crypto"
import { type Claims, type Key, makeKey, resource } from "./authorizationServer.ts"

export interface DpopClient {
  readonly key: Key
  readonly jkt: string
  /** Makes a proof at time 0. `undefined` leaves a member out. */
  readonly prove: (token: string, claims?: Claims, header?: Claims, signer?: Key) => Effect.Effect<string>
}

export const makeDpopClient = (alg = "ES256"): Effect.Effect<DpopClient> =>
  Effect.gen(function*() {
    const key = yield* makeKey(alg)
    const { alg: _alg, kid: _kid, use: _use, ...jwk } = key.publicJwk
    const jkt = yield* Effect.promise(() => jose.calculateJwkThumbprint(jwk))
    let count = 0
    return {
      key,
      jkt,
      prove: (token, claims = {}, header = {}, signer = key) =>
        Effect.promise(() =>
          new jose.SignJWT(JSON.parse(JSON.stringify({
            jti: `proof ${count++}`,
            htm: "POST",
            htu: resource,
            iat: 0,
            ath: createHash("sha256").update(token).digest("base64url"),
            ...claims
          })) as jose.JWTPayload).setProtectedHeader({
            typ: "dpop+jwt",
            alg,
            jwk,
            ...header
          }).sign(signer.privateKey)
        )
    }
  })
