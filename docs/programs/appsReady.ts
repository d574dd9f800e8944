import * as Approval from "@skein/apps/Approval"
import * as Choice from "@skein/apps/Choice"
import * as Form from "@skein/apps/Form"
import * as Upload from "@skein/apps/Upload"
import { AsyncServer } from "@skein/server/AsyncServer"
import * as Elicitation from "@skein/server/Elicitation"
import * as McpServer from "@skein/server/McpServer"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

const release = (version: string) => Effect.succeed(`${version} is deployed`)
const store = (name: string, bytes: Uint8Array) => Effect.succeed(`${name}#${bytes.length}`)
const book = (day: string, people: number) => Effect.succeed(`A table for ${people} on ${day} is booked`)
const freeSeats = (train: string) =>
  Effect.succeed([{ id: `${train}-1A`, isQuiet: true }, { id: `${train}-2C`, isQuiet: false }])

// #region approval
const deploy = Approval.make("deploy", {
  description: "Deploys a version, if the user approves",
  input: { version: Schema.String }
})

const Deploy = Approval.layer(deploy, {
  ask: ({ version }) =>
    Effect.succeed({
      title: `Deploy ${version}?`,
      details: "Customers see it at once.\nA rollback takes ten minutes.",
      approve: "Deploy",
      decline: "Not now"
    }),
  handle: ({ approved, input }) =>
    approved ? release(input.version) : Effect.succeed("The user declined. Nothing was deployed")
})
// #endregion

const seat = Choice.make("choose_seat", {
  description: "Lets the user choose a seat, and books it",
  input: { train: Schema.String }
})

const Seat = Choice.layer(seat, {
  ask: ({ train }) =>
    Effect.map(freeSeats(train), (seats) => ({
      title: `Which seat in ${train}?`,
      options: seats.map(({ id, isQuiet }) => ({ value: id, description: isQuiet ? "Quiet zone" : undefined })),
      choose: "Book"
    })),
  handle: ({ chosen }) => Effect.succeed(`The seat ${chosen} is booked`)
})

const table = Form.make("book_table", {
  description: "Lets the user book a table",
  input: { day: Schema.String },
  fields: {
    people: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 8 })).annotate({ title: "People" }),
    email: Elicitation.Email.annotate({ title: "E-mail", description: "For the confirmation" }),
    where: Elicitation.choice({ in: "Inside", out: "In the garden" }).annotate({ title: "Where" }),
    note: Schema.optionalKey(Schema.String.annotate({ title: "Note" }))
  },
  multiline: ["note"]
})

const Table = Form.layer(table, {
  ask: ({ day }) => Effect.succeed({ title: `A table on ${day}`, submit: "Book", initial: { people: 2 } }),
  handle: ({ input, values }) => book(input.day, values.people)
})

const invoices = Upload.make("upload_invoices", {
  description: "Lets the user upload invoices, and stores them",
  accept: [".pdf", "image/*"],
  limits: { maxFiles: 5, maxFileBytes: 5_000_000 }
})

const Invoices = Upload.layer(invoices, {
  ask: () => Effect.succeed({ title: "Which invoices?", details: "Accounting pays them within a week." }),
  handle: ({ files }) =>
    Effect.forEach(files, ({ bytes, name }) => store(name, bytes)).pipe(
      Effect.map((ids) => `Stored as ${ids.join(", ")}`)
    )
})

export const Server = McpServer.layer({ name: "desk", version: "1.0.0" }, Deploy, Seat, Table, Invoices)

export const server = new AsyncServer({ name: "desk", version: "1.0.0" }).use(
  Approval.async(deploy, {
    ask: ({ version }) => ({ title: `Deploy ${version}?` }),
    handle: async ({ approved, input }, { log }) => {
      log.info(`${input.version}: ${approved ? "approved" : "declined"}`)
      return approved ? `${input.version} is deployed` : "Nothing was deployed"
    }
  })
)
