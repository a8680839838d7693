// Command provisioner makes the volumes of the lab's default storage class. It is a service of every node and looks
// after that node's claims alone: a volume is an ext4 file system of the asked size, in a sparse file on the node's disk.
// The usual provisioner library is left out because its claim locks and back-off cost seconds per volume, which tests would pay.
//
//	provisioner mount    mounts the volumes that the node has, and ends; for its start
//	provisioner serve    provisions for the node NODE_NAME, with the API server of API_SERVER and the certificates of PKI_DIR
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

const provisionerName = "howdah-lab/local"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 1 {
		switch args[0] {
		case "mount":
			return nodeDisks.mountAll()
		case "serve":
			return serve(ctx)
		}
	}
	return fmt.Errorf("usage: provisioner mount|serve")
}

func serve(ctx context.Context) error {
	node := os.Getenv("NODE_NAME")
	if node == "" {
		return fmt.Errorf("NODE_NAME is not set")
	}
	dir := os.Getenv("PKI_DIR")
	config := &rest.Config{
		Host: os.Getenv("API_SERVER"),
		TLSClientConfig: rest.TLSClientConfig{
			CAFile: filepath.Join(dir, "ca.crt"), CertFile: filepath.Join(dir, "volumes.crt"), KeyFile: filepath.Join(dir, "volumes.key"),
		},
		QPS: 50, Burst: 100,
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	if err := awaitRights(ctx, client); err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactory(client, time.Minute)
	core := factory.Core().V1()
	p := &provisioner{
		client:  client,
		node:    node,
		disks:   nodeDisks,
		claims:  core.PersistentVolumeClaims().Lister(),
		volumes: core.PersistentVolumes().Lister(),
		classes: factory.Storage().V1().StorageClasses().Lister(),
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[item](100*time.Millisecond, 5*time.Second)),
	}
	for _, informer := range []cache.SharedIndexInformer{core.PersistentVolumeClaims().Informer(), core.PersistentVolumes().Informer()} {
		if _, err := informer.AddEventHandler(p.handler()); err != nil {
			return err
		}
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	go func() {
		<-ctx.Done()
		p.queue.ShutDown()
	}()
	log.Printf("provisioning for %s", node)
	for p.next(ctx) {
	}
	return nil
}

// awaitRights waits until the API server answers and has the lab's roles. An informer waits longer with each try.
func awaitRights(ctx context.Context, client kubernetes.Interface) error {
	return wait.PollUntilContextCancel(ctx, 300*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		_, err := client.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{Limit: 1})
		return err == nil, nil
	})
}

// item names a claim, or a volume when the namespace is empty.
type item struct {
	namespace, name string
}

func (p *provisioner) handler() cache.ResourceEventHandler {
	add := func(obj any) {
		switch o := obj.(type) {
		case *corev1.PersistentVolumeClaim:
			p.queue.Add(item{o.Namespace, o.Name})
		case *corev1.PersistentVolume:
			p.queue.Add(item{"", o.Name})
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    add,
		UpdateFunc: func(_, obj any) { add(obj) },
	}
}

func (p *provisioner) next(ctx context.Context) bool {
	key, quit := p.queue.Get()
	if quit {
		return false
	}
	defer p.queue.Done(key)
	if err := p.reconcile(ctx, key); err != nil {
		log.Printf("%s/%s: %v", key.namespace, key.name, err)
		p.queue.AddRateLimited(key)
		return true
	}
	p.queue.Forget(key)
	return true
}
