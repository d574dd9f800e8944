/** The reader of `WWW-Authenticate`: the grammar, several challenges, and any text. */
import { assert, describe, it } from "@effect/vitest"
import * as Schema from "effect/Schema"
import { oauthChallenge, parse } from "../../src/client/protocol/challenge.ts"
import * as Scopes from "../../src/client/protocol/scopes.ts"

const plain = (header: string) => parse(header).map(({ params, ...rest }) => ({ ...rest, params: { ...params } }))

describe("parse", () => {
  it("reads parameters as tokens and as quoted strings", () => {
    assert.deepEqual(plain("Bearer error=invalid_token, scope=\"a b\" ,realm = \"x\""), [
      { scheme: "bearer", params: { error: "invalid_token", scope: "a b", realm: "x" } }
    ])
  })

  it("does not find a challenge in a quoted string", () => {
    const header =
      "Basic realm=\"Bearer scope=\\\"admin\\\", resource_metadata=\\\"https://evil.example\\\"\", Bearer scope=\"read\""
    assert.deepEqual(plain(header), [
      { scheme: "basic", params: { realm: "Bearer scope=\"admin\", resource_metadata=\"https://evil.example\"" } },
      { scheme: "bearer", params: { scope: "read" } }
    ])
    assert.strictEqual(oauthChallenge(header).scope, "read")
    assert.strictEqual(oauthChallenge(header).resourceMetadata, undefined)
  })

  it("reads several challenges of one header and of joined headers", () => {
    assert.deepEqual(plain("Negotiate, Basic realm=\"a\", DPoP algs=\"ES256\", Bearer"), [
      { scheme: "negotiate", params: {} },
      { scheme: "basic", params: { realm: "a" } },
      { scheme: "dpop", params: { algs: "ES256" } },
      { scheme: "bearer", params: {} }
    ])
  })

  it("reads credentials in the form of one token", () => {
    assert.deepEqual(plain("Negotiate YII+a/b==, Bearer error=\"x\""), [
      { scheme: "negotiate", token68: "YII+a/b==", params: {} },
      { scheme: "bearer", params: { error: "x" } }
    ])
  })

  it("keeps the first of a repeated parameter, and names like __proto__ as they are", () => {
    const [challenge] = parse("Bearer scope=a, scope=b, __proto__=c, constructor=d")
    assert.strictEqual(challenge!.params["scope"], "a")
    assert.strictEqual(challenge!.params["__proto__"], "c")
    assert.strictEqual(challenge!.params["constructor"], "d")
    assert.strictEqual(challenge!.params["toString"], undefined)
  })

  it("reads a string without an end, and skips text outside of the grammar", () => {
    assert.deepEqual(plain("Bearer scope=\"a b"), [{ scheme: "bearer", params: { scope: "a b" } }])
    assert.deepEqual(plain(",, =x;\u0000 Bearer error=\"a\\"), [
      { scheme: "x", params: {} },
      { scheme: "bearer", params: { error: "a" } }
    ])
    assert.deepEqual(parse(undefined), [])
  })

  const tokenText = Schema.String.check(Schema.isPattern(/^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,12}$/))
  const quoted = (text: string): string => `"${text.replaceAll(/["\\]/g, (character) => `\\${character}`)}"`

  it.prop("reads what was written", [
    Schema.Array(Schema.Struct({
      scheme: tokenText,
      params: Schema.Array(Schema.Struct({ name: tokenText, value: Schema.String }))
    }))
  ], ([challenges]) => {
    const written = challenges.map(({ params, scheme }) =>
      `${scheme} ${params.map(({ name, value }) => `${name}=${quoted(value)}`).join(", ")}`.trimEnd()
    ).join(", ")
    const expected = challenges.map(({ params, scheme }) => {
      const all: Record<string, string> = Object.create(null)
      for (const { name, value } of params) all[name.toLowerCase()] ??= value
      return { scheme: scheme.toLowerCase(), params: { ...all } }
    })
    assert.deepEqual(plain(written), expected)
  })

  it.prop("reads any text in linear time, without failing", [Schema.String], ([text]) => {
    for (const { params, scheme } of parse(text)) {
      assert.isAbove(scheme.length, 0)
      for (const name of Object.keys(params)) assert.strictEqual(name, name.toLowerCase())
    }
  })

  it("takes linear time for long hostile headers", () => {
    const before = process.cpuUsage().user
    for (const part of ["a", "a ", "\"", "a=", "a=\"", "\\", ",", "a==", " ", "Bearer a\t"]) parse(part.repeat(200_000))
    assert.isBelow(process.cpuUsage().user - before, 10_000_000)
  })
})

describe("scopes", () => {
  const list = Schema.Array(Schema.String.check(Schema.isPattern(/^[a-z:]{1,3}$/)))

  it.prop("a union has each scope of both lists once, the earlier ones first", [list, list], ([a, b]) => {
    const union = Scopes.union(a, b)
    assert.strictEqual(new Set(union).size, union.length)
    assert.isTrue(Scopes.covers(union, a) && Scopes.covers(union, b))
    assert.isTrue(union.every((scope) => a.includes(scope) || b.includes(scope)))
    assert.deepEqual(Scopes.union(union, b), union)
    assert.deepEqual(union.slice(0, new Set(a).size), [...new Set(a)])
  })

  it.prop("a scope parameter is read as it was written", [list], ([scopes]) => {
    const distinct = [...new Set(scopes)]
    assert.deepEqual(Scopes.parse(Scopes.format(distinct)), distinct)
  })

  it("reads granted scopes that commas separate, unless a requested scope has a comma", () => {
    assert.deepEqual(Scopes.granted("read:user,repo", ["read:user", "repo"]), ["read:user", "repo"])
    assert.deepEqual(Scopes.granted("a,b c", ["a,b", "c"]), ["a,b", "c"])
    assert.deepEqual(Scopes.granted("", ["a"]), [])
  })

  it("2025-11-25 · Scope Selection · prefers the challenge over scopes_supported, and the option over both", () => {
    const choice = { configured: undefined, challenged: undefined, supported: ["s"], before: [] }
    assert.deepEqual(Scopes.select(choice), ["s"])
    assert.deepEqual(Scopes.select({ ...choice, challenged: "c d" }), ["c", "d"])
    assert.deepEqual(Scopes.select({ ...choice, challenged: "" }), [])
    assert.deepEqual(Scopes.select({ ...choice, challenged: "c", configured: ["o"] }), ["o"])
    assert.deepEqual(Scopes.select({ ...choice, supported: undefined }), [])
    assert.deepEqual(Scopes.select({ ...choice, challenged: "c", before: ["b"] }), ["b", "c"])
  })
})
