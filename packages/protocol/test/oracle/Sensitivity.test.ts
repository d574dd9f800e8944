/** Checks the oracle itself: each of its checks fails for an invalid model. */
import * as Definitions from "./Definitions.ts"
import type * as Revision from "@skein/protocol/Revision"
import * as Result from "effect/Result"
import { expect, it } from "vitest"
import * as Check from "./Check.ts"
import * as Exceptions from "./Exceptions.ts"
import * as JsonSchemaArbitrary from "./JsonSchemaArbitrary.ts"
import * as Spec from "./Spec.ts"
import * as Validate from "./Validate.ts"

const definition = (source: Spec.DocumentName, name: string): Definitions.Definition => {
  const found = Definitions.definitions(source).get(name)
  if (found === undefined) throw new Error(`${source} · ${name} is not in the registry`)
  return found
}

const newest = {
  resultType: "complete",
  content: [
    { type: "text", text: "a" },
    { type: "audio", data: "QQ==", mimeType: "audio/wav" },
    { type: "resource_link", uri: "file:///a", name: "a", icons: [{ src: "https://example.com/a.png" }] }
  ],
  structuredContent: [1]
}

Spec.describeSpec("the oracle", () => {
  it("2024-11-05 · refuses a result of 2026-07-28 that is not lowered, and accepts the lowered one", () => {
    const old = Spec.load("2024-11-05")
    expect(Validate.refusal(Spec.load("2026-07-28"), "CallToolResult", newest)).toBeUndefined()
    expect(Validate.refusal(old, "CallToolResult", newest)).toBeDefined()
    expect(Check.write(definition("2024-11-05", "CallToolResult"), old, newest)).toBeUndefined()
    const identity: Check.Subject = { name: "CallToolResult", read: Result.succeed, write: Result.succeed }
    expect(Check.write(identity, old, newest)).toContain("refused")
  })

  const sessionEra: ReadonlyArray<Revision.Revision> = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
  for (const source of sessionEra) {
    it(`${source} · refuses values of the model that are not lowered`, () => {
      const document = Exceptions.load(source)
      const refused = [...Definitions.definitions(source).values()].flatMap((subject) =>
        Check.canonical(subject, "bite", 20).filter((value) =>
          Validate.refusal(document, subject.name, JSON.parse(JSON.stringify(value))) !== undefined
        )
      )
      expect(refused.length).toBeGreaterThan(50)
    })
  }

  it("reports a reader that drops, renames, adds or changes members in place", () => {
    const document = Spec.load("2025-11-25")
    const tool = { name: "a", title: "A", inputSchema: { type: "object" } }
    const check = (read: Check.Subject["read"], write: Check.Subject["write"] = Result.succeed) =>
      Check.roundTrip({ name: "Tool", read, write }, document, structuredClone(tool))
    expect(check(Result.succeed)).toBeUndefined()
    expect(check(() => Result.fail("no"))).toContain("not read: no")
    expect(check(Result.succeed, () => Result.fail({ _tag: "Unrepresentable", message: "no" }))).toContain(
      "not written again: no"
    )
    expect(check(() => Result.succeed({ name: "a" }))).toContain("written again and refused")
    expect(check(() => Result.succeed({ name: "a", inputSchema: { type: "object" } }))).toContain("not the same")
    expect(check(() => Result.succeed({ ...tool, extra: 1 }))).toContain("not the same")
    expect(check((raw) => Result.succeed(Object.assign(raw as object, { title: "B" })))).toContain("changed in place")
  })

  // Values that reading accepts although the schema refuses them, because the text of the specification allows them or
  // peers send them.
  const lenient: ReadonlyArray<RegExp> = [
    // "The client MUST treat the absent field as `complete`"; an absent or malformed hint means stale at once.
    /^2026-07-28 · \w*Result\.resultType: (undefined|null)$/,
    /^2026-07-28 · \w*Result\.(ttlMs|cacheScope): (undefined|null|0)$/,
    /^tasks · Result\.resultType: (undefined|null)$/,
    // Servers with structured content alone leave the list out, and a null is an absent list.
    / · (CallToolResult|ToolResultContent)\.content: (undefined|null)$/,
    /^2026-07-28 · CallToolResultResponse\.result: \{\}$/,
    // JSON-RPC responds without an id, or with null, where the request's id could not be read; 2025-11-25 allows it.
    /^(2024-11-05|2025-03-26|2025-06-18) · JSONRPCError\.id: (undefined|null)$/,
    // A list of blocks is allowed since 2025-11-25, and its peers may send one in older revisions.
    /^(2024-11-05|2025-03-26|2025-06-18) · (SamplingMessage|CreateMessageResult)\.content: \[\]$/,
    // Only 2025-11-25 allows a cancellation without a request. Reading it has no effect.
    / · CancelledNotificationParams\.requestId: undefined$/,
    / · (Cancelled|Client)Notification\.params: \{\}$/,
    // 2026-07-28 has no elicitation id, and params without one are read in every revision.
    /^2025-11-25 · ElicitRequestURLParams\.elicitationId: (undefined|null)$/,
    // A null result is an empty one.
    / · JSONRPC(Result)?Response\.result: null$/,
    // The envelope accepts any object as a result.
    /^2026-07-28 · JSONRPCResultResponse\.result: \{\}$/
  ]

  const kinds: ReadonlyArray<unknown> = [null, 7, "\u0000", true, [], {}]
  for (const source of Spec.names) {
    it(`${source} · the model refuses a required member that is missing or of the wrong type`, () => {
      const document = Exceptions.load(source)
      const arbitrary = JsonSchemaArbitrary.make(document)
      const accepted: Array<string> = []
      let tried = 0
      for (const subject of Definitions.definitions(source).values()) {
        const required = document.definitions[subject.name]?.required ?? []
        const value = arbitrary.value(subject.name, 1) as Record<string, unknown>
        for (const name of required) {
          const { [name]: _, ...missing } = value
          for (const broken of [missing, ...kinds.map((kind) => ({ ...value, [name]: kind }))]) {
            const message = Validate.refusal(document, subject.name, broken)
            // Reading does not check formats.
            if (message === undefined || message.includes("must match format")) continue
            tried++
            if (Result.isFailure(subject.read(broken))) continue
            const what = JSON.stringify((broken as Record<string, unknown>)[name])
            accepted.push(`${source} · ${subject.name}.${name}: ${what}`)
          }
        }
      }
      expect(accepted.filter((line) => !lenient.some((pattern) => pattern.test(line)))).toEqual([])
      expect(tried).toBeGreaterThan(200)
    })
  }
})

Spec.describeSpec("the exceptions to the official schemas", () => {
  it("are necessary: the official schema refuses a value that the prose allows, and the widened one accepts it", () => {
    const needed: ReadonlyArray<readonly [Spec.DocumentName, string, unknown]> = [
      ["2026-07-28", "JSONValue", null],
      ["2026-07-28", "JSONValue", 0.5],
      ["2026-07-28", "JSONArray", [{ a: null }]],
      ["tasks", "JSONValue", null],
      ["tasks", "JSONValue", 0.5],
      ["2025-06-18", "ElicitResult", { action: "accept", content: { a: 0.5 } }],
      ["2025-11-25", "ElicitResult", { action: "accept", content: { a: 0.5 } }],
      ["2026-07-28", "ElicitResult", { action: "accept", content: { a: 0.5 } }],
      ["tasks", "ElicitResult", { action: "accept", content: { a: 0.5 } }]
    ]
    for (const [source, name, value] of needed) {
      expect(Validate.refusal(Spec.load(source), name, value)).toBeDefined()
      expect(Validate.refusal(Exceptions.load(source), name, value)).toBeUndefined()
    }
    const covered = new Set(needed.map(([source]) => source))
    expect(new Set(Exceptions.all.flatMap((exception) => exception.documents))).toEqual(covered)
  })

  it("are narrow: a form's content still must not contain null or objects", () => {
    for (const content of [{ a: null }, { a: {} }]) {
      expect(Validate.refusal(Exceptions.load("2026-07-28"), "ElicitResult", { action: "accept", content }))
        .toBeDefined()
    }
  })
})
