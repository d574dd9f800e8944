/** The programs of `docs/coming-from`: both sides of each page give the same answers. */
import { AsyncClient } from "skein/client"
import { describe, expect, it } from "vitest"
import { fromSource, program } from "../runtime.ts"

/** The programs, all of which read `programs/comingPrices.ts`, with the revisions that they are tested in. */
const programs = [
  ...fromSource(
    ["comingSdkV1", ["2025-11-25"]] as const,
    ["comingSdkV2", ["2025-11-25", "2026-07-28"]] as const,
    ["comingEffectAi", ["2025-11-25"]] as const,
    ["comingEffect", ["2025-11-25", "2026-07-28"]] as const
  ),
  ["comingAsync", ["2025-11-25", "2026-07-28"]] as const
]

describe.each(programs)("programs/%s.ts", (name, revisions) => {
  it.each(revisions)("%s · answers with prices, an error, an order, a resource and a prompt", async (revision) => {
    await using client = await AsyncClient.connect(program(`docs/programs/${name}.ts`), {
      revisions: [revision],
      elicit: () => ({ action: "accept", content: { grams: 250 } })
    })
    const call = async (name: string, args: Record<string, string | number>) => {
      const { content, isError } = await client.callTool(name, args)
      return [content[0], isError === true]
    }
    const text = (text: string) => expect.objectContaining({ type: "text", text })
    expect(await call("price", { tea: "sencha" })).toEqual([text("9 €"), false])
    expect(await call("price", { tea: "oolong", grams: 50 })).toEqual([text("6 €"), false])
    expect(await call("price", { tea: "mate" })).toEqual([text("There is no tea \"mate\""), true])
    expect(await call("order", { tea: "sencha" })).toEqual([text("250 g of sencha"), false])
    expect((await client.readResource("shop://prices")).contents).toMatchObject([
      { uri: "shop://prices", text: "{\"sencha\":900,\"oolong\":1200}" }
    ])
    expect((await client.getPrompt("advise", { guest: "Ada" })).messages).toMatchObject([
      { role: "user", content: { text: "Recommend a tea to Ada." } }
    ])
  })
})
