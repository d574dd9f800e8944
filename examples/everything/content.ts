/**
 * Tools that answer with each kind of content.
 */
import * as Content from "@skein/server/Content"
import * as Tool from "@skein/server/Tool"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { dot, silence } from "./media.ts"

const simpleText = Tool.layer(
  Tool.make("test_simple_text", { description: "Answers with text.", annotations: { readOnlyHint: true } }),
  () => Effect.succeed("This is a simple text response for testing.")
)

const image = Tool.layer(
  Tool.make("test_image_content", { description: "Answers with an image." }),
  () => Effect.succeed(Content.image(dot, "image/png"))
)

const audio = Tool.layer(
  Tool.make("test_audio_content", { description: "Answers with a sound." }),
  () => Effect.succeed(Content.audio(silence, "audio/wav"))
)

const embedded = Tool.layer(
  Tool.make("test_embedded_resource", { description: "Answers with a resource and its contents." }),
  () =>
    Effect.succeed(
      Content.resource("test://embedded-resource", "This is an embedded resource content.", { mimeType: "text/plain" })
    )
)

const multiple = Tool.layer(
  Tool.make("test_multiple_content_types", { description: "Answers with text, an image and a resource." }),
  () =>
    Effect.succeed([
      Content.text("Multiple content types test:"),
      Content.image(dot, "image/png"),
      Content.resource("test://mixed-content-resource", JSON.stringify({ test: "data", value: 123 }), {
        mimeType: "application/json"
      })
    ])
)

class Intended extends Data.TaggedError("Intended") {
  override readonly message = "This tool intentionally returns an error for testing"
}

const failing = Tool.layer(
  Tool.make("test_error_handling", { description: "Fails, as a tool may." }),
  () => Effect.fail(new Intended())
)

export const content = Layer.mergeAll(simpleText, image, audio, embedded, multiple, failing)
