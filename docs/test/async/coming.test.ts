/** The programs of `docs/coming-from`: both sides of each page give the same answers. */
import { describe, expect, it } from "@effect/vitest"
import * as Client from "@skein/client/Client"
import * as Elicitation from "@skein/client/Elicitation"
import * as Stdio from "@skein/client/Stdio"
import * as Effect from "effect/Effect"
import { join } from "node:path"
import { docs } from "./blocks.ts"

/** The programs, all of which read `programs/comingPrices.ts`, with the revisions that they are tested in. */
const programs = [
  ["programs/comingSdkV1.ts", ["2025-11-25"]],
  ["programs/comingSdkV2.ts", ["2025-11-25", "2026-07-28"]],
  ["programs/comingEffectAi.ts", ["2025-11-25"]],
  ["programs/comingAsync.ts", ["2025-11-25", "2026-07-28"]],
  ["programs/comingEffect.ts", ["2025-11-25", "2026-07-28"]]
] as const

describe.each(programs)("%s", (program, revisions) => {
  it.live.each(revisions)(
    "%s · answers with prices, an error, an order, a resource and a prompt",
    (revision) =>
      Effect.gen(function*() {
        const transport = Stdio.transport({
          command: process.execPath,
          args: ["--conditions=@skein/source", join(docs, program)]
        })
        const user = Elicitation.layer({ form: () => Effect.succeed(Elicitation.accept({ grams: 250 })) })
        const client = yield* Effect.provide(Client.make(transport, { revisions: [revision] }), user)
        const call = (name: string, args: Record<string, string | number>) =>
          Effect.map(client.callTool(name, args), ({ content, isError }) => [content[0], isError === true])
        const text = (text: string) => expect.objectContaining({ type: "text", text })
        expect(yield* call("price", { tea: "sencha" })).toEqual([text("9 €"), false])
        expect(yield* call("price", { tea: "oolong", grams: 50 })).toEqual([text("6 €"), false])
        expect(yield* call("price", { tea: "mate" })).toEqual([text("There is no tea \"mate\""), true])
        expect(yield* call("order", { tea: "sencha" })).toEqual([text("250 g of sencha"), false])
        expect((yield* client.readResource("shop://prices")).contents).toMatchObject([
          { uri: "shop://prices", text: "{\"sencha\":900,\"oolong\":1200}" }
        ])
        expect((yield* client.getPrompt("advise", { guest: "Ada" })).messages).toMatchObject([
          { role: "user", content: { text: "Recommend a tea to Ada." } }
        ])
      }).pipe(Effect.scoped)
  )
})
