/** Which ID tokens name a person. */
import { assert, describe, it } from "@effect/vitest"
import * as jose from "jose"
import { personOf } from "../../src/client/flow/tokens.ts"

const issuer = "https://login.example"
const claims = { iss: issuer, aud: "app", sub: "ada" }
const tokenOf = (claims: object): string => new jose.UnsecuredJWT({ ...claims }).encode()
const who = (claims: object) => personOf(tokenOf(claims), issuer, "app")

describe("personOf", () => {
  it("reads the subject and a name", () => {
    assert.deepEqual(who(claims), { subject: "ada" })
    assert.deepEqual(who({ ...claims, aud: ["other", "app"], name: "Ada" }), { subject: "ada", name: "Ada" })
    const all = { name: "Ada", preferred_username: "al", email: "ada@tea.example" }
    assert.deepEqual(who({ ...claims, ...all }), { subject: "ada", name: "ada@tea.example" })
    assert.deepEqual(who({ ...claims, name: "x".repeat(257), email: 1 }), { subject: "ada" })
  })

  it("names nobody by a token of another issuer or for another client, or a text that is not one", () => {
    for (const wrong of [{ iss: "https://other.example" }, { aud: "other" }, { aud: [] }, { sub: 1 }, { sub: "" }]) {
      assert.isUndefined(who({ ...claims, ...wrong }))
    }
    for (const text of ["", "a.b.c", "e30.e30.", tokenOf({}), "x".repeat(100_000)]) {
      assert.isUndefined(personOf(text, issuer, "app"))
    }
    assert.isUndefined(personOf(undefined, issuer, "app"))
  })
})
