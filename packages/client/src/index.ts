export * as Client from "./Client.ts"
export * as ClientError from "./ClientError.ts"
export * as Notification from "./Notification.ts"
export * as Stdio from "./Stdio.ts"
