/**
 * Tests of any client with any server that offers `fixtures/features.ts`.
 */
import { ResourceNotFoundError } from "@modelcontextprotocol/client"
import { expect, it } from "vitest"
import type { ProgressReport, TestClient } from "./testClient.ts"
import { eventually } from "./eventually.ts"
import * as Features from "./fixtures/features.ts"
import type { Pairing } from "./matrix.ts"

const textOf = (outcome: { readonly content: ReadonlyArray<Readonly<Record<string, unknown>>> }): unknown =>
  outcome.content.length === 1 && outcome.content[0]!["type"] === "text" ? outcome.content[0]!["text"] : outcome.content

/** Whether a process exists. */
const isRunning = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

/**
 * Whether a server sends only the members and content types of the revision. Skein converts other content to a known
 * type if possible; `effect/ai` fails the call. The SDKs send the newest members and content types in every revision.
 */
const followsRevision = ({ server }: Pairing): boolean => server === "skein" || server === "effect-ai"

/** The content types of `gallery` in a revision, as Skein sends them. */
const galleryTypes = (agreed: string): ReadonlyArray<string> => [
  "text",
  "image",
  agreed >= "2025-03-26" ? "audio" : "text",
  agreed >= "2025-06-18" ? "resource_link" : "text",
  "resource",
  "resource"
]

/**
 * `progress`: whether the server sends progress in this configuration. `resourceNotFound`: whether it has an error of its
 * own for a resource that does not exist.
 */
export const featureTests = (
  pairing: Pairing,
  connected: () => TestClient,
  { progress = true, resourceNotFound = pairing.server === "skein" }: {
    readonly progress?: boolean
    readonly resourceNotFound?: boolean
  } = {}
): void => {
  const { agreed } = pairing
  // The SDKs send members that the revision does not have. Skein reads them.
  const structured = agreed >= "2025-06-18" || !followsRevision(pairing)

  it("negotiates the revision, and receives the server's name and instructions", () => {
    const client = connected()
    expect(client.revision).toBe(agreed)
    expect(client.serverName).toBe(pairing.server)
    expect(client.instructions).toBe(Features.instructions)
  })

  it("lists tools with their schemas", async () => {
    const tools = await connected().tools()
    expect(tools.map((tool) => tool["name"]).toSorted()).toEqual(
      ["add", "cancelled", "count", "echo", "fail", "gallery", "greet", "release", "slow"]
    )
    const greet = tools.find((tool) => tool["name"] === "greet")!
    expect(greet["description"]).toBe("Greets a person by name")
    expect(greet["inputSchema"]).toMatchObject({
      type: "object",
      properties: { name: { type: "string" } },
      required: ["name"]
    })
    const add = tools.find((tool) => tool["name"] === "add")!
    if (structured) expect(add["outputSchema"]).toMatchObject({ properties: { sum: {} }, required: ["sum"] })
    else expect(add).not.toHaveProperty("outputSchema")
  })

  it("calls a tool, and returns text unchanged", async () => {
    expect(textOf(await connected().call("greet", { name: "Ada" }))).toBe("Hello, Ada!")
    expect(textOf(await connected().call("echo", { text: Features.unicode }))).toBe(Features.unicode)
  })

  it("returns the right result to each of 100 concurrent calls", async () => {
    const names = Array.from({ length: 100 }, (_, index) => `n${index}`)
    const results = await Promise.all(names.map((name) => connected().call("greet", { name })))
    expect(results.map(textOf)).toEqual(names.map((name) => `Hello, ${name}!`))
  })

  it("returns structured content", async () => {
    const outcome = await connected().call("add", { a: 2, b: 40 })
    expect(outcome.isError).toBe(false)
    expect(JSON.parse(textOf(outcome) as string)).toEqual({ sum: 42 })
    if (structured) expect(outcome.structuredContent).toEqual({ sum: 42 })
    else expect(outcome).not.toHaveProperty("structuredContent")
  })

  it("returns a tool error as a result with isError", async () => {
    const outcome = await connected().call("fail", {})
    expect(outcome.isError).toBe(true)
    expect(textOf(outcome)).toBe(Features.failure)
  })

  it("rejects an unknown tool and wrong arguments, and keeps the connection", async () => {
    const isRejected = (name: string, args: Readonly<Record<string, unknown>>) =>
      connected().call(name, args).then((outcome) => outcome.isError, () => true)
    expect(await isRejected("absent", {})).toBe(true)
    expect(await isRejected("greet", { name: 1 })).toBe(true)
    expect(textOf(await connected().call("greet", { name: "Ada" }))).toBe("Hello, Ada!")
  })

  it.runIf(progress)("sends progress in order, before the result", async () => {
    const notes: Array<ProgressReport> = []
    const client = connected()
    const released: Array<Promise<unknown>> = []
    const onProgress = (note: ProgressReport) => {
      notes.push(note)
      if (note.progress === 3) released.push(client.call("release", {}))
    }
    const outcome = await client.call("count", { steps: 3 }, { onProgress })
    await Promise.all(released)
    expect(textOf(outcome)).toBe("counted to 3")
    expect(notes.map(({ progress, total }) => [progress, total])).toEqual([[1, 3], [2, 3], [3, 3]])
    if (!followsRevision(pairing) || agreed >= "2025-03-26") {
      expect(notes.map(({ message }) => message)).toEqual(["step 1", "step 2", "step 3"])
    } else expect(notes.map(({ message }) => message)).toEqual([undefined, undefined, undefined])
  })

  it.runIf(progress)("interrupts the handler of a cancelled call", async () => {
    const client = connected()
    const before = Number(textOf(await client.call("cancelled", {})))
    const controller = new AbortController()
    const call = client.call("slow", {}, { signal: controller.signal, onProgress: () => controller.abort() })
    await expect(call).rejects.toBeDefined()
    expect(controller.signal.aborted).toBe(true)
    // Over HTTP the cancellation and the next call use different sockets.
    await eventually(async () => expect(Number(textOf(await client.call("cancelled", {})))).toBe(before + 1))
  })

  it("returns each content type", async () => {
    if (pairing.server === "effect-ai" && agreed < "2025-06-18") {
      await expect(connected().call("gallery", {})).rejects.toMatchObject({
        reason: { _tag: "ProtocolError", error: { code: -32602 } }
      })
      return
    }
    const { content } = await connected().call("gallery", {})
    const types = followsRevision(pairing) ? galleryTypes(agreed) : Features.gallery.map(({ type }) => type)
    expect(content.map((block) => block["type"])).toEqual(types)
    for (const [index, type] of types.entries()) {
      if (type === Features.gallery[index]!.type) expect(content[index]).toMatchObject(Features.gallery[index]!)
    }
  })

  it("returns a protocol error with its code", async () => {
    const absent = connected().read("test://absent")
    if (pairing.client === "skein") await expect(absent).rejects.toMatchObject({ reason: { _tag: "ProtocolError" } })
    else if (resourceNotFound) {
      // The v2 client maps the codes of all revisions to the newest one.
      if (pairing.client === "sdk-v2") await expect(absent).rejects.toBeInstanceOf(ResourceNotFoundError)
      else await expect(absent).rejects.toMatchObject({ code: -32002 })
      await expect(connected().call("absent", {})).rejects.toMatchObject({ code: -32602 })
    } else await expect(absent).rejects.toMatchObject({ code: expect.any(Number) })
  })

  it("lists resources over several pages, and reads them", async () => {
    expect((await connected().resources()).toSorted()).toEqual(Features.resourceUris.toSorted())
    expect(await connected().read(Features.textResource.uri)).toMatchObject([Features.textResource])
    expect(await connected().read(Features.blobResource.uri)).toMatchObject([Features.blobResource])
    expect(await connected().read(Features.pages[7]!)).toMatchObject([{ text: Features.pageText(Features.pages[7]!) }])
  })

  it("lists a resource template, and reads a matching URI", async () => {
    expect(await connected().templates()).toEqual([Features.template])
    expect(await connected().read("test://item/42")).toMatchObject([{ uri: "test://item/42", text: "item 42" }])
  })

  it("lists and returns a prompt with arguments", async () => {
    const prompts = await connected().prompts()
    expect(prompts).toMatchObject([{ name: "brief", description: "Asks for a briefing" }])
    const named = prompts[0]!["arguments"] as ReadonlyArray<{ readonly name: string; readonly required?: boolean }>
    expect(named.map(({ name, required }) => [name, required === true])).toEqual([["topic", true], ["tone", false]])
    const message = (args: Readonly<Record<string, string>>) => connected().prompt("brief", args)
    const text = (value: string) => [{ role: "user", content: { type: "text", text: value } }]
    expect(await message({ topic: "knots" })).toMatchObject(text(Features.brief("knots", undefined)))
    expect(await message({ topic: "knots", tone: "dry" })).toMatchObject(text(Features.brief("knots", "dry")))
    await expect(message({})).rejects.toBeDefined()
  })

  it("causes no errors outside of calls, and the server process exits when the client closes", async () => {
    const client = connected()
    const begin = performance.now()
    await client.close()
    if (client.pid !== undefined) expect(isRunning(client.pid)).toBe(false)
    expect(client.clientErrors).toEqual([])
    // A client would wait two seconds before it sends a signal.
    expect(performance.now() - begin).toBeLessThan(1_900)
  })
}
