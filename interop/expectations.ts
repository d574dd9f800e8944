/**
 * What has to hold whenever a client meets a server.
 */
import { ResourceNotFoundError } from "@modelcontextprotocol/client"
import { expect, it } from "vitest"
import type { AnyClient, ProgressNote } from "./clients.ts"
import { eventually } from "./eventually.ts"
import * as Offer from "./fixtures/offer.ts"
import type { Meeting } from "./matrix.ts"

const textOf = (outcome: { readonly content: ReadonlyArray<Readonly<Record<string, unknown>>> }): unknown =>
  outcome.content.length === 1 && outcome.content[0]!["type"] === "text" ? outcome.content[0]!["text"] : outcome.content

/** Whether a process is there. */
const alive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

/**
 * An SDK writes newest members and content kinds in every revision, also those that the schema of the revision does not have. Skein
 * writes only what is there, in other kinds where that can be; so does `effect/ai`, which fails a call whose content is of no kind of
 * the revision.
 */
const writesOnlyWhatIsKnown = ({ server }: Meeting): boolean => server === "skein" || server === "effect-ai"

/** The kinds of content of `gallery` at a revision, as Skein writes them. */
const galleryTypes = (agreed: string): ReadonlyArray<string> => [
  "text",
  "image",
  agreed >= "2025-03-26" ? "audio" : "text",
  agreed >= "2025-06-18" ? "resource_link" : "text",
  "resource",
  "resource"
]

/** `progress`: whether the server can tell of it as it is served. */
export const expectations = (
  meeting: Meeting,
  connected: () => AnyClient,
  { progress = true }: { readonly progress?: boolean } = {}
): void => {
  const { agreed } = meeting
  // Skein neither writes nor reads a member that the revision does not have.
  const structured = agreed >= "2025-06-18" || (meeting.client !== "skein" && meeting.server !== "skein")

  it("agree on the revision, and the client learns who serves", () => {
    const client = connected()
    expect(client.revision).toBe(agreed)
    expect(client.serverName).toBe(meeting.server)
    expect(client.instructions).toBe(Offer.instructions)
  })

  it("tools are listed with their schemas", async () => {
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

  it("a tool is called, and text comes back as it went", async () => {
    expect(textOf(await connected().call("greet", { name: "Ada" }))).toBe("Hello, Ada!")
    expect(textOf(await connected().call("echo", { text: Offer.unicode }))).toBe(Offer.unicode)
  })

  it("many calls at once each get their own answer", async () => {
    const names = Array.from({ length: 100 }, (_, index) => `n${index}`)
    const answers = await Promise.all(names.map((name) => connected().call("greet", { name })))
    expect(answers.map(textOf)).toEqual(names.map((name) => `Hello, ${name}!`))
  })

  it("structured content", async () => {
    const outcome = await connected().call("add", { a: 2, b: 40 })
    expect(outcome.isError).toBe(false)
    expect(JSON.parse(textOf(outcome) as string)).toEqual({ sum: 42 })
    if (structured) expect(outcome.structuredContent).toEqual({ sum: 42 })
    else expect(outcome).not.toHaveProperty("structuredContent")
  })

  it("an expected failure is a result with isError", async () => {
    const outcome = await connected().call("fail", {})
    expect(outcome.isError).toBe(true)
    expect(textOf(outcome)).toBe(Offer.failure)
  })

  it("an unknown tool and wrong arguments are refused, and the connection goes on", async () => {
    const refused = (name: string, args: Readonly<Record<string, unknown>>) =>
      connected().call(name, args).then((outcome) => outcome.isError, () => true)
    expect(await refused("absent", {})).toBe(true)
    expect(await refused("greet", { name: 1 })).toBe(true)
    expect(textOf(await connected().call("greet", { name: "Ada" }))).toBe("Hello, Ada!")
  })

  it.runIf(progress)("progress arrives in order, before the answer", async () => {
    const notes: Array<ProgressNote> = []
    const client = connected()
    const released: Array<Promise<unknown>> = []
    const onProgress = (note: ProgressNote) => {
      notes.push(note)
      if (note.progress === 3) released.push(client.call("release", {}))
    }
    const outcome = await client.call("count", { steps: 3 }, { onProgress })
    await Promise.all(released)
    expect(textOf(outcome)).toBe("counted to 3")
    expect(notes.map(({ progress, total }) => [progress, total])).toEqual([[1, 3], [2, 3], [3, 3]])
    if (!writesOnlyWhatIsKnown(meeting) || agreed >= "2025-03-26") {
      expect(notes.map(({ message }) => message)).toEqual(["step 1", "step 2", "step 3"])
    } else expect(notes.map(({ message }) => message)).toEqual([undefined, undefined, undefined])
  })

  it.runIf(progress)("a cancelled call is interrupted where it runs", async () => {
    const client = connected()
    const before = Number(textOf(await client.call("cancelled", {})))
    const controller = new AbortController()
    const call = client.call("slow", {}, { signal: controller.signal, onProgress: () => controller.abort() })
    await expect(call).rejects.toBeDefined()
    expect(controller.signal.aborted).toBe(true)
    // Over HTTP the two travel on sockets of their own.
    await eventually(async () => expect(Number(textOf(await client.call("cancelled", {})))).toBe(before + 1))
  })

  it("each kind of content", async () => {
    if (meeting.server === "effect-ai" && agreed < "2025-06-18") {
      await expect(connected().call("gallery", {})).rejects.toMatchObject({ error: { code: -32602 } })
      return
    }
    const { content } = await connected().call("gallery", {})
    const types = writesOnlyWhatIsKnown(meeting) ? galleryTypes(agreed) : Offer.gallery.map(({ type }) => type)
    expect(content.map((block) => block["type"])).toEqual(types)
    for (const [index, type] of types.entries()) {
      if (type === Offer.gallery[index]!.type) expect(content[index]).toMatchObject(Offer.gallery[index]!)
    }
  })

  it("a protocol error arrives as one, with its code", async () => {
    const absent = connected().read("test://absent")
    if (meeting.client === "skein") await expect(absent).rejects.toMatchObject({ reason: { _tag: "ProtocolError" } })
    else if (meeting.server === "skein") {
      // The v2 client tells the codes of all revisions apart by itself, and gives the newest one.
      if (meeting.client === "sdk-v2") await expect(absent).rejects.toBeInstanceOf(ResourceNotFoundError)
      else await expect(absent).rejects.toMatchObject({ code: -32002 })
      await expect(connected().call("absent", {})).rejects.toMatchObject({ code: -32602 })
    } else await expect(absent).rejects.toMatchObject({ code: expect.any(Number) })
  })

  it("resources are listed over several pages, and read", async () => {
    expect((await connected().resources()).toSorted()).toEqual(Offer.resourceUris.toSorted())
    expect(await connected().read(Offer.textResource.uri)).toMatchObject([Offer.textResource])
    expect(await connected().read(Offer.blobResource.uri)).toMatchObject([Offer.blobResource])
    expect(await connected().read(Offer.pages[7]!)).toMatchObject([{ text: Offer.pageText(Offer.pages[7]!) }])
  })

  it("a resource template is listed, and matched", async () => {
    expect(await connected().templates()).toEqual([Offer.template])
    expect(await connected().read("test://item/42")).toMatchObject([{ uri: "test://item/42", text: "item 42" }])
  })

  it("a prompt with arguments", async () => {
    const prompts = await connected().prompts()
    expect(prompts).toMatchObject([{ name: "brief", description: "Asks for a briefing" }])
    const named = prompts[0]!["arguments"] as ReadonlyArray<{ readonly name: string; readonly required?: boolean }>
    expect(named.map(({ name, required }) => [name, required === true])).toEqual([["topic", true], ["tone", false]])
    const message = (args: Readonly<Record<string, string>>) => connected().prompt("brief", args)
    const text = (value: string) => [{ role: "user", content: { type: "text", text: value } }]
    expect(await message({ topic: "knots" })).toMatchObject(text(Offer.brief("knots", undefined)))
    expect(await message({ topic: "knots", tone: "dry" })).toMatchObject(text(Offer.brief("knots", "dry")))
    await expect(message({})).rejects.toBeDefined()
  })

  it("nothing was said that belongs nowhere, and the server's process ends when the client closes", async () => {
    const client = connected()
    const begin = performance.now()
    await client.close()
    if (client.pid !== undefined) expect(alive(client.pid)).toBe(false)
    expect(client.complaints).toEqual([])
    // A client that has to send a signal waits for two seconds first.
    expect(performance.now() - begin).toBeLessThan(1_900)
  })
}
