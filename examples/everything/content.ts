/**
 * Tools that return each type of content, and one that fails.
 */
import * as Content from "@skein/server/Content"
import * as Tool from "@skein/server/Tool"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { dot, silence } from "./media.ts"

const simpleText = Tool.layer(
  Tool.make("test_simple_text", { description: "Returns text.", annotations: { readOnlyHint: true } }),
  () => Effect.succeed("This is a simple text response for testing.")
)

const image = Tool.layer(
  Tool.make("test_image_content", { description: "Returns an image." }),
  () => Effect.succeed(Content.image(dot, "image/png"))
)

const audio = Tool.layer(
  Tool.make("test_audio_content", { description: "Returns audio." }),
  () => Effect.succeed(Content.audio(silence, "audio/wav"))
)

const embedded = Tool.layer(
  Tool.make("test_embedded_resource", { description: "Returns an embedded resource." }),
  () =>
    Effect.succeed(
      Content.resource("test://embedded-resource", "This is an embedded resource content.", { mimeType: "text/plain" })
    )
)

const multiple = Tool.layer(
  Tool.make("test_multiple_content_types", { description: "Returns text, an image and an embedded resource." }),
  () =>
    Effect.succeed([
      Content.text("Multiple content types test:"),
      Content.image(dot, "image/png"),
      Content.resource("test://mixed-content-resource", JSON.stringify({ test: "data", value: 123 }), {
        mimeType: "application/json"
      })
    ])
)

class IntendedError extends Data.TaggedError("IntendedError") {
  override readonly message = "This tool intentionally returns an error for testing"
}

const failing = Tool.layer(
  Tool.make("test_error_handling", { description: "Fails with a tool error." }),
  () => Effect.fail(new IntendedError())
)

export const content = Layer.mergeAll(simpleText, image, audio, embedded, multiple, failing)
