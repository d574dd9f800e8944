/**
 * Prompts with and without arguments, with a resource and with an image.
 */
import * as Content from "@skein/server/Content"
import * as Prompt from "@skein/server/Prompt"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { dot } from "./media.ts"

const simple = Prompt.layer(
  Prompt.make("test_simple_prompt", { description: "A prompt without arguments." }),
  () => Effect.succeed("This is a simple prompt for testing.")
)

const withArguments = Prompt.layer(
  Prompt.make("test_prompt_with_arguments", {
    description: "A prompt with two arguments.",
    arguments: {
      arg1: Schema.String.annotate({ description: "First test argument" }),
      arg2: Schema.String.annotate({ description: "Second test argument" })
    }
  }),
  ({ arg1, arg2 }) => Effect.succeed(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`),
  { complete: { arg1: ["testing", "tested", "toast", "toad"] } }
)

const withResource = Prompt.layer(
  Prompt.make("test_prompt_with_embedded_resource", {
    description: "A prompt with an embedded resource.",
    arguments: { resourceUri: Schema.String.annotate({ description: "URI of the resource to embed" }) }
  }),
  ({ resourceUri }) =>
    Effect.succeed([
      Prompt.user(
        Content.resource(resourceUri, "Embedded resource content for testing.", { mimeType: "text/plain" })
      ),
      Prompt.user("Please process the embedded resource above.")
    ])
)

const withImage = Prompt.layer(
  Prompt.make("test_prompt_with_image", { description: "A prompt with an image." }),
  () =>
    Effect.succeed([
      Prompt.user(Content.image(dot, "image/png")),
      Prompt.user("Please analyze the image above.")
    ])
)

export const prompts = Layer.mergeAll(simple, withArguments, withResource, withImage)
