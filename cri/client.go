package cri

import (
	"context"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// The unary calls: one line each, to the generated client.

func (x *runtimeClient) Version(ctx context.Context, in *runtimeapi.VersionRequest) (*runtimeapi.VersionResponse, error) {
	return x.c.Version(ctx, in)
}

func (x *runtimeClient) Status(ctx context.Context, in *runtimeapi.StatusRequest) (*runtimeapi.StatusResponse, error) {
	return x.c.Status(ctx, in)
}

func (x *runtimeClient) RuntimeConfig(ctx context.Context, in *runtimeapi.RuntimeConfigRequest) (*runtimeapi.RuntimeConfigResponse, error) {
	return x.c.RuntimeConfig(ctx, in)
}

func (x *runtimeClient) UpdateRuntimeConfig(ctx context.Context, in *runtimeapi.UpdateRuntimeConfigRequest) (*runtimeapi.UpdateRuntimeConfigResponse, error) {
	return x.c.UpdateRuntimeConfig(ctx, in)
}

func (x *runtimeClient) RunPodSandbox(ctx context.Context, in *runtimeapi.RunPodSandboxRequest) (*runtimeapi.RunPodSandboxResponse, error) {
	return x.c.RunPodSandbox(ctx, in)
}

func (x *runtimeClient) StopPodSandbox(ctx context.Context, in *runtimeapi.StopPodSandboxRequest) (*runtimeapi.StopPodSandboxResponse, error) {
	return x.c.StopPodSandbox(ctx, in)
}

func (x *runtimeClient) RemovePodSandbox(ctx context.Context, in *runtimeapi.RemovePodSandboxRequest) (*runtimeapi.RemovePodSandboxResponse, error) {
	return x.c.RemovePodSandbox(ctx, in)
}

func (x *runtimeClient) PodSandboxStatus(ctx context.Context, in *runtimeapi.PodSandboxStatusRequest) (*runtimeapi.PodSandboxStatusResponse, error) {
	return x.c.PodSandboxStatus(ctx, in)
}

func (x *runtimeClient) ListPodSandbox(ctx context.Context, in *runtimeapi.ListPodSandboxRequest) (*runtimeapi.ListPodSandboxResponse, error) {
	return x.c.ListPodSandbox(ctx, in)
}

func (x *runtimeClient) UpdatePodSandboxResources(ctx context.Context, in *runtimeapi.UpdatePodSandboxResourcesRequest) (*runtimeapi.UpdatePodSandboxResourcesResponse, error) {
	return x.c.UpdatePodSandboxResources(ctx, in)
}

func (x *runtimeClient) CreateContainer(ctx context.Context, in *runtimeapi.CreateContainerRequest) (*runtimeapi.CreateContainerResponse, error) {
	return x.c.CreateContainer(ctx, in)
}

func (x *runtimeClient) StartContainer(ctx context.Context, in *runtimeapi.StartContainerRequest) (*runtimeapi.StartContainerResponse, error) {
	return x.c.StartContainer(ctx, in)
}

func (x *runtimeClient) StopContainer(ctx context.Context, in *runtimeapi.StopContainerRequest) (*runtimeapi.StopContainerResponse, error) {
	return x.c.StopContainer(ctx, in)
}

func (x *runtimeClient) RemoveContainer(ctx context.Context, in *runtimeapi.RemoveContainerRequest) (*runtimeapi.RemoveContainerResponse, error) {
	return x.c.RemoveContainer(ctx, in)
}

func (x *runtimeClient) ListContainers(ctx context.Context, in *runtimeapi.ListContainersRequest) (*runtimeapi.ListContainersResponse, error) {
	return x.c.ListContainers(ctx, in)
}

func (x *runtimeClient) ContainerStatus(ctx context.Context, in *runtimeapi.ContainerStatusRequest) (*runtimeapi.ContainerStatusResponse, error) {
	return x.c.ContainerStatus(ctx, in)
}

func (x *runtimeClient) UpdateContainerResources(ctx context.Context, in *runtimeapi.UpdateContainerResourcesRequest) (*runtimeapi.UpdateContainerResourcesResponse, error) {
	return x.c.UpdateContainerResources(ctx, in)
}

func (x *runtimeClient) ReopenContainerLog(ctx context.Context, in *runtimeapi.ReopenContainerLogRequest) (*runtimeapi.ReopenContainerLogResponse, error) {
	return x.c.ReopenContainerLog(ctx, in)
}

func (x *runtimeClient) ExecSync(ctx context.Context, in *runtimeapi.ExecSyncRequest) (*runtimeapi.ExecSyncResponse, error) {
	return x.c.ExecSync(ctx, in)
}

func (x *runtimeClient) Exec(ctx context.Context, in *runtimeapi.ExecRequest) (*runtimeapi.ExecResponse, error) {
	return x.c.Exec(ctx, in)
}

func (x *runtimeClient) Attach(ctx context.Context, in *runtimeapi.AttachRequest) (*runtimeapi.AttachResponse, error) {
	return x.c.Attach(ctx, in)
}

func (x *runtimeClient) PortForward(ctx context.Context, in *runtimeapi.PortForwardRequest) (*runtimeapi.PortForwardResponse, error) {
	return x.c.PortForward(ctx, in)
}

func (x *runtimeClient) ContainerStats(ctx context.Context, in *runtimeapi.ContainerStatsRequest) (*runtimeapi.ContainerStatsResponse, error) {
	return x.c.ContainerStats(ctx, in)
}

func (x *runtimeClient) ListContainerStats(ctx context.Context, in *runtimeapi.ListContainerStatsRequest) (*runtimeapi.ListContainerStatsResponse, error) {
	return x.c.ListContainerStats(ctx, in)
}

func (x *runtimeClient) PodSandboxStats(ctx context.Context, in *runtimeapi.PodSandboxStatsRequest) (*runtimeapi.PodSandboxStatsResponse, error) {
	return x.c.PodSandboxStats(ctx, in)
}

func (x *runtimeClient) ListPodSandboxStats(ctx context.Context, in *runtimeapi.ListPodSandboxStatsRequest) (*runtimeapi.ListPodSandboxStatsResponse, error) {
	return x.c.ListPodSandboxStats(ctx, in)
}

func (x *runtimeClient) ListMetricDescriptors(ctx context.Context, in *runtimeapi.ListMetricDescriptorsRequest) (*runtimeapi.ListMetricDescriptorsResponse, error) {
	return x.c.ListMetricDescriptors(ctx, in)
}

func (x *runtimeClient) ListPodSandboxMetrics(ctx context.Context, in *runtimeapi.ListPodSandboxMetricsRequest) (*runtimeapi.ListPodSandboxMetricsResponse, error) {
	return x.c.ListPodSandboxMetrics(ctx, in)
}

func (x *runtimeClient) CheckpointContainer(ctx context.Context, in *runtimeapi.CheckpointContainerRequest) (*runtimeapi.CheckpointContainerResponse, error) {
	return x.c.CheckpointContainer(ctx, in)
}

func (x *imageClient) ListImages(ctx context.Context, in *runtimeapi.ListImagesRequest) (*runtimeapi.ListImagesResponse, error) {
	return x.c.ListImages(ctx, in)
}

func (x *imageClient) ImageStatus(ctx context.Context, in *runtimeapi.ImageStatusRequest) (*runtimeapi.ImageStatusResponse, error) {
	return x.c.ImageStatus(ctx, in)
}

func (x *imageClient) PullImage(ctx context.Context, in *runtimeapi.PullImageRequest) (*runtimeapi.PullImageResponse, error) {
	return x.c.PullImage(ctx, in)
}

func (x *imageClient) RemoveImage(ctx context.Context, in *runtimeapi.RemoveImageRequest) (*runtimeapi.RemoveImageResponse, error) {
	return x.c.RemoveImage(ctx, in)
}

func (x *imageClient) ImageFsInfo(ctx context.Context, in *runtimeapi.ImageFsInfoRequest) (*runtimeapi.ImageFsInfoResponse, error) {
	return x.c.ImageFsInfo(ctx, in)
}
