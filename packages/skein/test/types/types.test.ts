/** The programs of this folder compile, and do what their types say. */
import { describe, expect, it } from "@effect/vitest"
import type { AsyncServer } from "skein"
import { callText, withClient } from "../server/kit.ts"
import * as arktype from "./arktype.ts"
import * as valibot from "./valibot.ts"
import * as zod from "./zod.ts"

const servers: ReadonlyArray<readonly [name: string, server: AsyncServer]> = [
  ["zod", zod.server],
  ["arktype", arktype.server],
  ["valibot", valibot.server]
]

const answer = { people: 2, kind: "green" }

describe("a server with schemas of", () => {
  it.each(servers)(
    "%s · reads arguments, variables and forms as its handlers declare them",
    (_, server) =>
      withClient(server, async (client) => {
        expect((await client.callTool("order", { name: "sencha" })).structuredContent).toMatchObject({ total: 400 })
        expect((await client.callTool("order", { name: 1 })).isError).toBe(true)
        expect(await callText(client, "ask")).toBe("2 green")
        const { messages } = await client.getPrompt("advise", { mood: "calm", cups: "3" })
        expect(messages).toMatchObject([{ content: { text: "calm 3" } }])
        expect(await client.readResource("cup://4")).toMatchObject({ contents: [{ text: "5" }] })
      }, { elicit: () => ({ action: "accept", content: answer }) })
  )

  it("zod · reads unions, values that are converted, and variables of a query", () =>
    withClient(zod.server, async (client) => {
      expect(await callText(client, "choose", { by: "id", id: "7" })).toBe("id")
      expect(await callText(client, "convert", { day: "2026-11-29" })).toBe("2026")
      expect(await client.readResource("tea://green/7?year=2026")).toMatchObject({
        contents: [{ text: "green 7 2026" }]
      })
    }))
})
