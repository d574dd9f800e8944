import { ServerCapabilities } from "@skein/protocol/Capabilities"
import * as Codec from "@skein/protocol/Codec"
import { Implementation } from "@skein/protocol/Implementation"
import { InitializeResult } from "@skein/protocol/Initialize"
import * as Introduction from "@skein/protocol/Introduction"
import * as Method from "@skein/protocol/Method"
import * as Revision from "@skein/protocol/Revision"
import { describe, expect, it } from "@effect/vitest"
import * as Result from "effect/Result"

const introduction = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "a", version: "1" } }

describe("reading the params of initialize", () => {
  it("2025-11-25 · returns the version, capabilities and implementation information, and ignores unknown members", () => {
    expect(Result.getOrThrow(Introduction.read({ ...introduction, _meta: {}, more: 1 }))).toEqual(introduction)
    const open = {
      ...introduction,
      capabilities: { elicitation: 7, more: {} },
      clientInfo: { ...introduction.clientInfo, x: 1 }
    }
    expect(Result.getOrThrow(Introduction.read(open))).toEqual(open)
  })

  it("2025-11-25 · names the missing member, which the client MUST send", () => {
    const problem = (params: object | undefined) =>
      Result.getOrThrow(Result.flip(Introduction.read(params as Record<string, unknown> | undefined)))
    expect(problem(undefined)).toContain("params.protocolVersion")
    expect(problem({ ...introduction, protocolVersion: 1 })).toContain("params.protocolVersion")
    expect(problem({ ...introduction, capabilities: undefined })).toContain("params.capabilities")
    expect(problem({ ...introduction, capabilities: [] })).toContain("params.capabilities")
    expect(problem({ ...introduction, clientInfo: { name: "a" } })).toContain("params.clientInfo")
    expect(problem({ ...introduction, clientInfo: null })).toContain("params.clientInfo")
  })
})

describe("writing the result of initialize", () => {
  // Every member of the schemas, so that a new member is compared too.
  const full = {
    _meta: { a: 1 },
    protocolVersion: "2025-11-25",
    capabilities: {
      experimental: { x: {} },
      extensions: { "a/b": {} },
      logging: {},
      completions: {},
      prompts: { listChanged: true },
      resources: { subscribe: true, listChanged: true },
      tools: { listChanged: true },
      tasks: { list: {}, cancel: {}, requests: { tools: { call: {} } } }
    },
    serverInfo: {
      name: "a",
      title: "A",
      version: "1",
      description: "d",
      websiteUrl: "https://a.example",
      icons: [{ src: "https://a.example/i.png", mimeType: "image/png", sizes: ["any"], theme: "dark" as const }]
    },
    instructions: "Search first."
  }
  const unknown = { ...full, capabilities: { ...full.capabilities, more: {} }, more: 1 }

  it("compares every member that the schemas have", () => {
    expect(Object.keys(full).sort()).toEqual(Object.keys(InitializeResult.fields).sort())
    expect(Object.keys(full.capabilities).sort()).toEqual(Object.keys(ServerCapabilities.fields).sort())
    expect(Object.keys(full.serverInfo).sort()).toEqual(Object.keys(Implementation.fields).sort())
  })

  for (const revision of Revision.all.filter((revision) => Revision.era(revision) === "session")) {
    it(`${revision} · writes what the codec writes`, () => {
      for (const result of [full, unknown, { ...full, capabilities: {}, serverInfo: { name: "a", version: "1" } }]) {
        expect(Introduction.write(result, revision)).toEqual(
          Result.getOrThrow(Codec.encodeResult(Method.Initialize, revision, result))
        )
      }
    })
  }
})
