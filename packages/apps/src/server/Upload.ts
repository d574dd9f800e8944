/**
 * Lets the user pick files, on a page with a button and a place to drop them. The page is a part of this module.
 * `handle` receives the bytes, and the model only the names and the sizes.
 *
 * A model calls the tool, and its host shows the page, as in `Approval`. The page declares the files, and sends each
 * one in parts, as base64, to a tool that models do not get. The server checks the number, the sizes,
 * the names and the types, whatever the page has checked. The parts are in memory until `handle` has ended, the user
 * cancels, 5 minutes have passed, or the session ends. They are never written to a disk.
 *
 * - The browser reports the name and the type of a file. Do not trust a type before you have looked at the bytes.
 *   A name has no slash and no control character, but do not use it as a path.
 * - A client without pages fails the call with `AskError` `CannotAsk`: no form has files.
 * - The page shows why an upload is refused (`UploadError`), and the user can pick other files.
 *
 * @example
 * const invoices = Upload.make("upload_invoices", {
 *   description: "Lets the user upload invoices",
 *   accept: [".pdf", "image/*"],
 *   limits: { maxFiles: 5 }
 * })
 * const live = Upload.layer(invoices, {
 *   ask: () => Effect.succeed({ title: "Which invoices?" }),
 *   handle: ({ files }) => Effect.map(store(files), (ids) => `Stored as ${ids.join(", ")}`)
 * })
 */
import * as RuntimeOptions from "@skein/runtime/Options"
import type { HandlerError } from "@skein/server/HandlerError"
import type * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as askTool from "./askTool.ts"
import { type FileBounds, makeFileReceiver, MaxPartBytes, type ReceivedFile } from "./fileReceiver.ts"
import type * as openQuestions from "./openQuestions.ts"
import { uploadPage } from "./readyPages.ts"

export type { Bounds, Limits } from "./openQuestions.ts"

/**
 * A file: its name and its media type, as the browser of the user says, and its bytes. Two files may have the same
 * name.
 */
export interface File extends ReceivedFile {}

/** The texts of the page. They are shown as text: markup has no effect. */
export interface Question extends askTool.Question {
  /** The label of the button that sends the files. `Upload` by default. */
  readonly upload?: string | undefined
}

/** The bounds of the files, and of the open questions. */
export interface FileLimits extends openQuestions.Limits {
  /** The number of files: 10 by default. More are refused with `WrongCount`. Lower it for a tool that takes one file. */
  readonly maxFiles?: number | undefined
  /**
   * The number of bytes of a file: 10,485,760 by default. A larger one is refused with `FileTooLarge`. Raise it for scans
   * and videos.
   */
  readonly maxFileBytes?: number | undefined
  /**
   * The number of bytes of all files of an upload: 20,971,520 by default. More are refused with `TotalTooLarge`. The
   * uploads of one client in progress may have twice as many. A client is a principal, else a network address, else a
   * session. A further upload is refused with `BuffersFull`. Raise it with `maxFileBytes`.
   */
  readonly maxTotalBytes?: number | undefined
  /**
   * The number of bytes of all uploads in progress: 104,857,600 by default. A further one is refused with
   * `BuffersFull`. Raise it as far as the memory of the server allows.
   */
  readonly maxBufferedBytes?: number | undefined
}

/** The accepted files, and their bounds. */
export interface FileOptions {
  /**
   * The accepted files, as in HTML: `.csv`, `image/png` or `image/*`. A file needs one of them. All files by default.
   */
  readonly accept?: ReadonlyArray<string> | undefined
  /** The bounds of the files, and of the open questions. */
  readonly limits?: FileLimits | undefined
}

/** The description of the tool, and its bounds. */
export interface Options<Input extends Tool.AnySchema> extends Omit<askTool.AskOptions<Input>, "limits">, FileOptions {}

/** How long the transfer of the files may take. Then the question is closed. */
const transferTimeoutMs = 5 * 60_000

const Size = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))

/** The messages of the page. */
const Step = Schema.Union([
  Schema.Struct({
    step: Schema.Literal("begin"),
    files: Schema.Array(Schema.Struct({ name: Schema.String, type: Schema.String, size: Size }))
  }),
  Schema.Struct({ step: Schema.Literal("part"), file: Size, at: Size, data: Schema.String }),
  Schema.Struct({ step: Schema.Literal("end") }),
  Schema.Struct({ step: Schema.Literal("cancel") })
])

/** A tool that lets the user upload files. Made by `Upload.make`. Its page calls a second tool, `<name>_files`. */
export interface Upload<Name extends string, Input> extends askTool.AskTool<Name, Input, typeof Step.Type> {
  readonly files: FileBounds
}

/** The files, and the arguments of the call. */
export interface Uploaded<Input> {
  readonly files: ReadonlyArray<File>
  readonly input: Input
}

/**
 * Defines a tool that lets the user upload files. `input` has the arguments, as in `Tool.make`.
 *
 * @example
 * const photo = Upload.make("upload_photo", { accept: ["image/jpeg", "image/png"], limits: { maxFiles: 1, maxFileBytes:
 * 2_000_000 } })
 */
export const make = <const Name extends string, Input extends Tool.AnySchema = {}>(
  name: Name,
  options: Options<Input> & Pick<Tool.CheckedSchemas<Input, never>, "input"> = {}
): Upload<Name, Tool.InputOf<Input>> => {
  const { accept = [], limits, ...rest } = options
  return {
    ...askTool.make<Name, Input, typeof Step>(name, { ...rest, limits } as askTool.AskOptions<Input>, {
      app: uploadPage,
      suffix: "files",
      answer: Step
    }),
    files: {
      accept,
      ...RuntimeOptions.resolve<Omit<FileLimits, keyof openQuestions.Limits>>({ ...limits }, {
        maxFiles: 10,
        maxFileBytes: 10_485_760,
        maxTotalBytes: 20_971_520,
        maxBufferedBytes: 104_857_600
      }, {})
    }
  }
}

/**
 * Registers the tool with two functions: `ask` makes the question from the arguments, and `handle` runs when all files
 * have arrived. The model receives what `handle` returns, as text, with the names and the sizes of the files. The bytes
 * are forgotten when `handle` ends, unless it keeps them.
 *
 * @example
 * const live = Upload.layer(photo, {
 *   ask: () => Effect.succeed({ title: "Your photo", details: "It is shown to your team." }),
 *   handle: ({ files: [photo] }) => Effect.as(savePhoto(photo!.bytes), "The photo is saved")
 * })
 */
export const layer = <
  Name extends string,
  Input,
  E1 extends HandlerError = never,
  R1 = never,
  E2 extends HandlerError = never,
  R2 = never
>(
  upload: Upload<Name, Input>,
  { ask, handle }: askTool.Handlers<Input, Question, Uploaded<Input>, E1, R1, E2, R2>
): askTool.Registered<R1 | R2> => {
  const { accept, maxFileBytes, maxFiles, maxTotalBytes } = upload.files
  const live = Effect.map(MaxPartBytes, (maxPartBytes) => {
    const receiver = makeFileReceiver(upload.files, maxPartBytes)
    return askTool.layer<Name, Input, typeof Step.Type, Question, E1 | E2, R1 | R2>(upload, {
      ask,
      check: ({ details, upload }) => Effect.succeed([details, upload]),
      forPage: ({ upload = "Upload" }) => ({ upload, accept, maxFiles, maxFileBytes, maxTotalBytes, maxPartBytes }),
      withoutPage: ({ question }) => Effect.fail(askTool.cannotAsk(question, "no pages")),
      closed: (waiting) => receiver.release(waiting),
      answer: (open, token, step) => {
        if (step.step === "end") {
          // Nothing may interrupt between the question, which is then answered, and the release of its bytes.
          return Effect.uninterruptibleMask((restore) =>
            Effect.flatMap(open.take(token, (waiting) => receiver.complete(waiting)), (waiting) =>
              Effect.ensuring(
                restore(Effect.suspend(() => handle({ files: receiver.files(waiting), input: waiting.input }))),
                Effect.sync(() => receiver.release(waiting))
              ))
          )
        }
        return Effect.flatMap(open.get(token), ({ client, value: waiting }) => {
          if (step.step === "part") return receiver.add(waiting, step)
          if (step.step === "cancel") return Effect.sync(() => receiver.release(waiting))
          return Effect.tap(
            receiver.begin(waiting, client, step.files),
            () => Effect.sync(() => open.closeAfter(token, transferTimeoutMs))
          )
        })
      }
    })
  })
  return Layer.unwrap(live)
}

/**
 * Registers the tool with functions that return values or promises: see `Tool.async`.
 *
 * @example
 * server.use(Upload.async(photo, {
 *   ask: () => ({ title: "Your photo" }),
 *   handle: async ({ files }, { signal }) => `Saved as ${await save(files[0].bytes, signal)}`
 * }))
 */
const async_ = <Name extends string, Input, R = never>(
  upload: Upload<Name, Input>,
  handlers: askTool.AsyncHandlers<Input, Question, Uploaded<Input>, R>
): askTool.Registered<R> => layer(upload, askTool.toEffects(handlers))
export { async_ as async }
