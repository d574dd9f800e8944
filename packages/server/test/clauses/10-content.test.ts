/** Content in results of handlers: content that strict clients would refuse is not sent, and the log has the reason. */
import { describe, expect, it } from "@effect/vitest"
import * as Revision from "@skein/protocol/Revision"
import * as Content from "@skein/server/Content"
import * as Prompt from "@skein/server/Prompt"
import * as Resource from "@skein/server/Resource"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as kit from "../kit.ts"

const link = (rest: object) => Content.resourceLink({ uri: "a:b", name: "n", ...rest })

const wrong: ReadonlyArray<readonly [clause: string, block: Content.ContentBlock, problem: string]> = [
  ["2025-06-18 · a resource link has a URI", link({ uri: "/etc/hosts" }), "\"/etc/hosts\" is not a valid URI"],
  ["2025-06-18 · a resource link has a URI", link({ uri: "file:///a b" }), "\"file:///a b\" is not a valid URI"],
  ["2025-06-18 · the size of a resource link is in bytes", link({ size: 0.5 }), "whole number"],
  ["2025-11-25 · an icon's src is a URI", link({ icons: [{ src: "i.png" }] }), "src"],
  [
    "2024-11-05 · an embedded resource MUST include a valid resource URI",
    Content.resource("notes", "text"),
    "is not a valid URI"
  ],
  ["2024-11-05 · a priority is between 0 and 1", Content.text("t", { annotations: { priority: 2 } }), "from 0 to 1"]
]

for (const revision of Revision.all) {
  describe(revision, () => {
    for (const [clause, block, problem] of wrong) {
      it.effect(`${revision} · ${clause}: ${JSON.stringify(block)}`, () =>
        kit.logged((lines) =>
          Effect.gen(function*() {
            const server = kit.server(
              Tool.layer(Tool.make("t"), () => Effect.succeed(block)),
              Tool.layer(Tool.make("r"), () => Effect.succeed(Tool.result({ content: [block], isError: true }))),
              Prompt.layer(Prompt.make("p"), () => Effect.succeed([Prompt.user(block)])),
              Prompt.layer(Prompt.make("w"), () => Effect.succeed({ messages: [Prompt.user(block)] }))
            )
            const client = yield* kit.client(server, revision)
            for (
              const [method, name] of [["tools/call", "t"], ["tools/call", "r"], ["prompts/get", "p"], [
                "prompts/get",
                "w"
              ]]
            ) {
              const before = lines.length
              if (method === "tools/call") yield* client.defect(name!)
              else {
                expect(yield* client.error(method!, { name })).toEqual({
                  code: -32603,
                  message: "Internal error",
                  data: { reference: expect.any(String) }
                })
              }
              expect(lines.slice(before).join()).toContain(problem)
            }
          })
        ))
    }

    it.effect(`${revision} · does not send contents with an invalid URI`, () =>
      kit.logged((lines) =>
        Effect.gen(function*() {
          const contents = [Content.resourceContents("a:b", "text"), Content.resourceContents("b", "text")]
          const server = kit.server(
            Resource.layer(Resource.make("r://some"), Effect.succeed(contents)),
            Resource.layer(Resource.make("r://whole"), Effect.succeed({ contents }))
          )
          const client = yield* kit.client(server, revision)
          for (const uri of ["r://some", "r://whole"]) {
            expect((yield* client.error("resources/read", { uri })).code).toBe(-32603)
            expect(lines.at(-1)).toContain("\"b\" is not a valid URI")
          }
        })
      ))
  })
}

describe("2024-11-05 · the image data MUST be base64-encoded", () => {
  for (const data of ["data:image/png;base64,AQID", "AQI", "AQ ID", "AQ==AQ==", "_-_-", "=AQI"]) {
    it(`${data} is not base64`, () => {
      expect(() => Content.image(data, "image/png")).toThrow("base64")
      expect(() => Content.audio(data, "audio/wav")).toThrow("base64")
    })
  }

  it("accepts valid base64 unchanged", () => {
    for (const data of ["", "AQID", "AQ==", "AQI=", "+/+/"]) expect(Content.image(data, "image/png").data).toBe(data)
  })
})
