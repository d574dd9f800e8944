/** One catalog with definitions of every kind, which the tests serve in all revisions. */
import * as Content from "@skein/server/Content"
import * as McpServer from "@skein/server/McpServer"
import * as Progress from "@skein/server/Progress"
import * as Prompt from "@skein/server/Prompt"
import * as Resource from "@skein/server/Resource"
import * as ResourceTemplate from "@skein/server/ResourceTemplate"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

const icons = [{ src: "https://example.com/i.png", mimeType: "image/png", sizes: ["48x48"], theme: "dark" as const }]
const annotations = { audience: ["user" as const], priority: 0.5, lastModified: "2026-01-01T00:00:00Z" }

/** Three bytes, `AQID` in base64. */
export const bytes = new Uint8Array([1, 2, 3])

export const blocks = [
  Content.text("plain", { annotations, _meta: { "example.com/a": 1 } }),
  Content.image(bytes, "image/png", { annotations }),
  Content.audio(bytes, "audio/wav", { annotations }),
  Content.resourceLink({ uri: "notes://1", name: "note-1", title: "Note one", mimeType: "text/plain", size: 3, icons }),
  Content.resource("notes://2", "inline text", { mimeType: "text/plain", annotations }),
  Content.resource("notes://3", bytes, { mimeType: "application/octet-stream" })
]

const show = Tool.make("show", {
  title: "Shows",
  description: "Every kind of content",
  annotations: { readOnlyHint: true },
  icons,
  _meta: { "example.com/tool": true }
})
const add = Tool.make("add", {
  description: "Adds two numbers",
  input: { a: Schema.Finite, b: Schema.Finite },
  output: { sum: Schema.Finite }
})
const list = Tool.make("numbers", { output: Schema.Array(Schema.Finite) })
const steps = Tool.make("steps")

const readme = Resource.make("docs://readme", {
  name: "readme",
  title: "Read me",
  description: "Text",
  mimeType: "text/markdown",
  size: 7,
  annotations,
  icons
})
const blob = Resource.make("docs://blob", { mimeType: "application/octet-stream" })
const many = Resource.make("docs://many")
const note = ResourceTemplate.make("notes://{id}", {
  name: "note",
  title: "A note",
  mimeType: "text/plain",
  annotations,
  icons
})

const review = Prompt.make("review", {
  title: "Review",
  description: "Reviews code",
  arguments: {
    code: Schema.String.annotate({ title: "Code", description: "What to review" }),
    tone: Schema.optionalKey(Schema.String)
  },
  icons
})
const gallery = Prompt.make("gallery")

export const server = McpServer.layer(
  {
    name: "everything",
    version: "1.2.3",
    title: "Everything",
    description: "One of each",
    websiteUrl: "https://example.com",
    icons,
    instructions: "Ask for anything"
  },
  Tool.layer(add, ({ a, b }) => Effect.succeed({ sum: a + b })),
  Tool.layer(list, () => Effect.succeed([1, 2.5, 3])),
  Tool.layer(show, () => Effect.succeed(blocks)),
  Tool.layer(steps, () =>
    Effect.gen(function*() {
      yield* Progress.report({ progress: 1, total: 2, message: "one" })
      yield* Progress.report({ progress: 2, total: 2, message: "two" })
      return "done"
    })),
  Resource.layer(blob, Effect.succeed(bytes)),
  Resource.layer(
    many,
    Effect.succeed([
      Content.resourceContents("docs://many/1", "one", "text/plain"),
      Content.resourceContents("docs://many/2", bytes)
    ])
  ),
  Resource.layer(readme, Effect.succeed("# Hello")),
  ResourceTemplate.layer(note, ({ id }) => Effect.succeed(`Note ${id}`)),
  Prompt.layer(gallery, () => Effect.succeed(blocks.map((block) => Prompt.user(block)))),
  Prompt.layer(
    review,
    ({ code, tone }) => Effect.succeed([Prompt.user(`${tone ?? "kind"}: ${code}`), Prompt.assistant("Sure")])
  )
)
