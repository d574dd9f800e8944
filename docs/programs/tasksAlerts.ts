/** Sends the alerts of tasks to a webhook. */
import * as PostgresTasks from "@skein/tasks/PostgresTasks"
import * as TaskAlerts from "@skein/tasks/TaskAlerts"
import * as Effect from "effect/Effect"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as Layer from "effect/Layer"

// #region alerts
const post = (webhook: string, text: string) =>
  HttpClientRequest.post(webhook).pipe(HttpClientRequest.bodyJson({ text }), Effect.flatMap(HttpClient.execute))

export const alerts = (webhook: string) =>
  TaskAlerts.layer({
    queueOlderThan: "5 minutes",
    notify: (alert) => {
      if (alert._tag === "QueueOld") return post(webhook, `${alert.ready} tasks of ${alert.tool} wait for a worker`)
      // An error in the words of the tool needs nothing from an operator.
      if (alert._tag === "Failed" && alert.outcome === "tool_error") return Effect.void
      return post(webhook, `${alert._tag}: ${alert.task.tool} ${alert.task.id.slice(0, 8)}`)
    }
  })

export const engine = (url: string, webhook: string) =>
  PostgresTasks.layer({ url }).pipe(Layer.provide(alerts(webhook)))
// #endregion
