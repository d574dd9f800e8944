import * as Initialize from "@skein/protocol/Initialize"
import { describe, expect, it } from "@effect/vitest"
import * as Result from "effect/Result"

const introduction = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "a", version: "1" } }

describe("reading the params of initialize", () => {
  it("2025-11-25 · returns the version, capabilities and implementation information, and ignores unknown members", () => {
    expect(Result.getOrThrow(Initialize.read({ ...introduction, _meta: {}, more: 1 }))).toEqual(introduction)
    const open = {
      ...introduction,
      capabilities: { elicitation: 7, more: {} },
      clientInfo: { ...introduction.clientInfo, x: 1 }
    }
    expect(Result.getOrThrow(Initialize.read(open))).toEqual(open)
  })

  it("2025-11-25 · names the missing member, which the client MUST send", () => {
    const problem = (params: object | undefined) =>
      Result.getOrThrow(Result.flip(Initialize.read(params as Record<string, unknown> | undefined)))
    expect(problem(undefined)).toContain("params.protocolVersion")
    expect(problem({ ...introduction, protocolVersion: 1 })).toContain("params.protocolVersion")
    expect(problem({ ...introduction, capabilities: undefined })).toContain("params.capabilities")
    expect(problem({ ...introduction, capabilities: [] })).toContain("params.capabilities")
    expect(problem({ ...introduction, clientInfo: { name: "a" } })).toContain("params.clientInfo")
    expect(problem({ ...introduction, clientInfo: null })).toContain("params.clientInfo")
  })
})
