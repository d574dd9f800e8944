/** A server as its author writes it with Zod, and mistakes that the compiler refuses. */
import { AsyncServer } from "skein"
import { expectTypeOf } from "vitest"
import { z } from "zod"

const Tea = z.object({ name: z.string(), grams: z.int().min(50).default(100), organic: z.boolean().optional() })

export const server = new AsyncServer({ name: "zod", version: "1.0.0" })
  .tool("order", { input: Tea, output: z.object({ total: z.number(), at: z.iso.datetime() }) }, (input) => {
    expectTypeOf(input).toEqualTypeOf<{ name: string; grams: number; organic?: boolean | undefined }>()
    return { total: input.grams * 4, at: "2026-11-29T20:00:00Z" }
  })
  .tool("choose", {
    input: z.discriminatedUnion("by", [
      z.object({ by: z.literal("name"), name: z.string() }),
      z.object({ by: z.literal("id"), id: z.coerce.number() })
    ])
  }, (input) => {
    if (input.by === "name") expectTypeOf(input.name).toEqualTypeOf<string>()
    else expectTypeOf(input.id).toEqualTypeOf<number>()
    return input.by
  })
  .tool("convert", { input: z.object({ day: z.string().transform((text) => new Date(text)) }) }, ({ day }) => {
    expectTypeOf(day).toEqualTypeOf<Date>()
    return day.getUTCFullYear()
  })
  .tool("ask", {}, async (input, { elicit, once }) => {
    expectTypeOf(input).toEqualTypeOf<{}>()
    const form = z.object({
      people: z.int().min(1),
      kind: z.enum(["green", "black"]),
      extras: z.array(z.enum(["milk", "honey"])).optional(),
      isGift: z.boolean().optional()
    })
    const answer = await elicit("For how many?", form)
    if (answer.action !== "accept") return answer.action
    expectTypeOf(answer.content).toEqualTypeOf<{
      people: number
      kind: "green" | "black"
      extras?: Array<"milk" | "honey"> | undefined
      isGift?: boolean | undefined
    }>()
    const at = await once("at", () => ({ on: "2026-11-29", count: answer.content.people }))
    expectTypeOf(at.count).toEqualTypeOf<number>()
    return `${at.count} ${answer.content.kind}`
  })
  .prompt("advise", { arguments: z.object({ mood: z.string(), cups: z.coerce.number().optional() }) }, (args) => {
    expectTypeOf(args).toEqualTypeOf<{ mood: string; cups?: number | undefined }>()
    return `${args.mood} ${args.cups ?? 1}`
  }, { complete: { mood: ["calm", "awake"] } })
  .template("tea://{kind}/{id}{?year}", { name: "tea" }, (variables) => {
    expectTypeOf(variables.kind).toEqualTypeOf<string>()
    expectTypeOf(variables.year).toEqualTypeOf<string | undefined>()
    return `${variables.kind} ${variables.id} ${variables.year ?? "any"}`
  })
  .template("cup://{id}", { name: "cup", variables: z.object({ id: z.coerce.number<string>() }) }, ({ id }) => {
    expectTypeOf(id).toEqualTypeOf<number>()
    return String(id + 1)
  })

export const mistakes = (): void => {
  // @ts-expect-error: `total` does not match `output`
  server.tool("t", { output: z.object({ total: z.number() }) }, () => ({ total: "4" }))
  // @ts-expect-error: `total` does not match `output`
  server.tool("t", { output: z.object({ total: z.number() }) }, async () => ({}))
  // @ts-expect-error: there is no argument of that name
  server.tool("t", { input: Tea }, ({ nme }) => nme)
  // @ts-expect-error: pass the schema of the whole `input`
  server.tool("t", { input: { name: z.string() } }, () => "")
  // @ts-expect-error: `cups` of `arguments` does not read text
  server.prompt("p", { arguments: z.object({ cups: z.number() }) }, () => "")
  // @ts-expect-error: pass the schema of the whole `arguments`
  server.prompt("p", { arguments: { cups: z.string() } }, () => "")
  // @ts-expect-error: the template has no variable of that name
  server.template("tea://{id}", { name: "tea", variables: z.object({ nme: z.string() }) }, () => "")
  // @ts-expect-error: `id` of `variables` does not read text
  server.template("tea://{id}", { name: "tea", variables: z.object({ id: z.number() }) }, () => "")
  server.tool("t", {}, async (_, { elicit }) => {
    // @ts-expect-error: a form has no nested objects
    await elicit("?", z.object({ place: z.object({ city: z.string() }) }))
    const answer = await elicit("?", z.object({ people: z.int() }))
    // @ts-expect-error: only an accepted answer has content
    return answer.content
  })
}
