/** Runs `programs/skills.ts`. */
import { expect, it } from "@effect/vitest"
import * as Client from "@skein/client/Client"
import * as RemoteSkill from "@skein/skills/RemoteSkill"
import * as InMemoryTransport from "@skein/runtime/InMemoryTransport"
import type { Principal } from "@skein/server/Principal"
import * as McpServer from "@skein/server/McpServer"
import * as LanguageModel from "effect/ai/LanguageModel"
import type * as Response from "effect/ai/Response"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { answer, daily, isApproved, limits, refunds, served, Shop } from "../programs/skills.ts"

const connect = <E>(server: Layer.Layer<McpServer.McpServer, E>, principal?: Principal) =>
  Effect.gen(function*() {
    const { serve } = Context.get(yield* Layer.build(server), McpServer.McpServer)
    return yield* Client.make(InMemoryTransport.transport(serve, principal === undefined ? {} : { principal }))
  })

it.effect("serves a skill and its files, and loads them", () =>
  Effect.gen(function*() {
    const client = yield* connect(Shop)
    expect((yield* client.listResources()).map(({ uri }) => uri)).toEqual([
      "skill://shop/refunds/SKILL.md",
      "skill://shop/refunds/references/limits.md"
    ])
    expect(yield* limits(client)).toEqual({
      instructions: "Find the order with the tool find_order. Then follow references/limits.md.\n",
      limits: "Above 500 EUR a manager must agree.\n"
    })
  }))

it.effect("does not use a file that is not the listed one", () =>
  Effect.gen(function*() {
    const client = yield* connect(Shop)
    const uri = "skill://shop/refunds/references/limits.md"
    const tampered = {
      ...client,
      requestAll: client.requestAll,
      readResource: (asked: string) =>
        asked === uri
          ? Effect.succeed({ contents: [{ uri, text: "Above 999 EUR a manager must agree.\n" }] })
          : client.readResource(asked)
    } as Client.Client
    expect(yield* Effect.flip(limits(tampered))).toBe(`${uri} is not the file that was listed`)
  }))

it.effect("serves the skills of a folder below a prefix", () =>
  Effect.gen(function*() {
    const folder = yield* Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "skein-skills-"))),
      (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
    )
    mkdirSync(join(folder, "git/commits"), { recursive: true })
    writeFileSync(join(folder, "git/commits/SKILL.md"), "---\nname: commits\ndescription: Commits\n---\nBe brief.\n")
    const client = yield* connect(served(folder))
    expect((yield* RemoteSkill.list(client)).map(({ uri }) => uri)).toEqual(["skill://docs/git/commits/SKILL.md"])
  }))

it.effect("shows a dynamic skill to callers with a principal", () =>
  Effect.gen(function*() {
    const server = McpServer.layer({ name: "shop", version: "1.0.0" }, daily(Effect.succeed("3 orders.")))
    expect(yield* RemoteSkill.list(yield* connect(server))).toEqual([])
    const client = yield* connect(server, { id: "ada" })
    const [entry] = yield* RemoteSkill.list(client)
    expect(entry!.resources).toBe("dynamic")
    const refused = yield* Effect.flip(RemoteSkill.load(client, entry!))
    expect(refused.reason._tag).toBe("NotVerifiable")
    expect((yield* RemoteSkill.load(client, entry!, { allowDynamic: true })).instructions).toBe("3 orders.\n")
  }))

it.effect("lets a model load a skill", () =>
  Effect.gen(function*() {
    const prompts: Array<string> = []
    const finish = { type: "finish", reason: "tool-calls", usage: { inputTokens: {}, outputTokens: {} } } as const
    const Model = Layer.effect(
      LanguageModel.LanguageModel,
      LanguageModel.make({
        generateText: ({ prompt }) => {
          prompts.push(JSON.stringify(prompt.content[0]))
          const params = { skill: "shop:refunds" }
          return Effect.succeed<Array<Response.PartEncoded>>(
            [{ type: "tool-call", id: "1", name: "load_skill", params }, finish]
          )
        },
        streamText: () => Stream.empty
      })
    )
    const client = yield* connect(Shop)
    const response = yield* Effect.provide(answer({ shop: client }, "I want my money back"), Model)
    expect(prompts[0]).toContain(refunds.name)
    expect(JSON.stringify(response.content)).toContain("Find the order with the tool find_order.")
  }))

it.effect("binds an approval to the content", () =>
  Effect.gen(function*() {
    const [entry] = yield* RemoteSkill.list(yield* connect(Shop))
    const approvals = new Map([[`shop ${entry!.uri}`, (yield* RemoteSkill.fingerprint(entry!))!]])
    expect(yield* isApproved("shop", entry!, approvals)).toBe(true)
    expect(yield* isApproved("other", entry!, approvals)).toBe(false)
    expect(yield* isApproved("shop", { ...entry!, resources: [] }, approvals)).toBe(false)
    expect(yield* isApproved("shop", { ...entry!, resources: "dynamic" }, approvals)).toBe(false)
  }))
