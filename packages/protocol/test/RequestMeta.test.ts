import * as RequestMeta from "@skein/protocol/RequestMeta"
import * as Stamp from "@skein/protocol/Stamp"
import * as Result from "effect/Result"
import { describe, expect, it } from "vitest"

const stamp = {
  protocolVersion: "2026-07-28",
  clientCapabilities: { elicitation: { form: {} }, roots: { listChanged: true }, tasks: {} },
  clientInfo: { name: "a", version: "1" }
}

describe("the metadata of a request", () => {
  it("2026-07-28 · reads the metadata that a stamper wrote", () => {
    const params = Stamp.stamp({ name: "a" }, stamp)
    expect(RequestMeta.isModern(params)).toBe(true)
    expect(RequestMeta.versionOf(params)).toBe("2026-07-28")
    expect(Result.getOrThrow(RequestMeta.read(params))).toEqual({
      protocolVersion: "2026-07-28",
      // Capabilities of other revisions are not written.
      clientCapabilities: { elicitation: { form: {} }, roots: {} },
      clientInfo: stamp.clientInfo,
      logLevel: undefined
    })
    expect(params["name"]).toBe("a")
  })

  it("a stamper keeps other members of _meta, and reserved keys that the caller has set", () => {
    const raw = JSON.parse("{\"__proto__\":{\"x\":1},\"_meta\":{\"progressToken\":7,\"__proto__\":{\"y\":1}}}")
    raw._meta[RequestMeta.logLevel] = "debug"
    const params = Stamp.stamp(raw, { ...stamp, logLevel: "error" })
    expect(Result.getOrThrow(RequestMeta.read(params)).logLevel).toBe("debug")
    expect(params["_meta"]).toMatchObject({ progressToken: 7 })
    expect(JSON.stringify(params)).toContain("\"__proto__\":{\"x\":1}")
    expect(JSON.stringify(params)).toContain("\"__proto__\":{\"y\":1}")
    expect(Object.getPrototypeOf(params)).toBe(Object.prototype)
    expect(raw._meta).not.toHaveProperty([RequestMeta.protocolVersion])
  })

  it("2026-07-28 · requires protocolVersion and clientCapabilities", () => {
    const problem = (meta: object | undefined) =>
      Result.getOrThrow(Result.flip(RequestMeta.read(meta === undefined ? undefined : { _meta: meta })))
    const message = (key: string, what: string) => `params._meta[${JSON.stringify(key)}]: ${what}`
    expect(problem(undefined)).toBe(message(RequestMeta.protocolVersion, "missing"))
    expect(problem({})).toBe(message(RequestMeta.protocolVersion, "missing"))
    expect(problem({ [RequestMeta.protocolVersion]: 7 })).toBe(message(RequestMeta.protocolVersion, "Expected string"))
    expect(problem({ [RequestMeta.protocolVersion]: "x" })).toBe(message(RequestMeta.clientCapabilities, "missing"))
    const valid = { [RequestMeta.protocolVersion]: "x", [RequestMeta.clientCapabilities]: {} }
    const nulls = { ...valid, [RequestMeta.clientInfo]: null, [RequestMeta.logLevel]: null }
    expect(Result.getOrThrow(RequestMeta.read({ _meta: nulls }))).toMatchObject({
      clientInfo: undefined,
      logLevel: undefined
    })
    expect(problem({ ...valid, [RequestMeta.clientInfo]: { name: "a" } })).toBe(
      message(RequestMeta.clientInfo, "Expected an object with a \"name\" and a \"version\"")
    )
    expect(problem({ ...valid, [RequestMeta.logLevel]: "loud" })).toContain(
      message(RequestMeta.logLevel, "Expected one of")
    )
    expect(problem({ ...valid, [RequestMeta.clientCapabilities]: [] })).toBe(
      message(RequestMeta.clientCapabilities, "Expected an object")
    )
    expect(Result.isSuccess(RequestMeta.read({ _meta: valid }))).toBe(true)
  })

  it("a request without a version in _meta belongs to the session era", () => {
    const unnamed = { _meta: { [RequestMeta.protocolVersion]: null } }
    for (const params of [undefined, {}, { _meta: null }, { _meta: [] }, { _meta: { progressToken: 1 } }, unnamed]) {
      expect(RequestMeta.isModern(params)).toBe(false)
      expect(RequestMeta.versionOf(params)).toBeUndefined()
    }
    expect(RequestMeta.isModern({ _meta: Object.create({ [RequestMeta.protocolVersion]: "2026-07-28" }) })).toBe(false)
  })
})
